# An interface: many statuses, identifiers and counts that differ each time.

hpack 48836c0cff5f921d75d0620d263d4c5761e3a0b4ffbe883d5f5c84136d3cf74089f2b585ed6950958d279765f0bd24918a47c2518598da79e648f32cbd295c681287408a416cee5b1649a935537f921d75fdc96d9038d2ee7d29247f725b640cb35886a8eb2127b0bf54919d29ad17186075d6b97c8e9ae82ae7b26f409419085421621ea4d87a162f9ace82ad3947216c478ef2b585ed6950958d27d2941aaebf758275bf408bb0692d06a4c95a835264ff820801408db0692d06a4c95ac2d233546aa6827dff6196df697e94134a693f75040138a0417000b800298b46ff7685a4664d8593
nghttp2 48033530335f921d75d0620d263d4c5761e3a0b4ffbe883d5f0f0d84136d3cf74089f2b585ed6950958d279765f0bd24918a47c2518598da79e648f32cbd295c681287408a416cee5b1649a935537f921d75fdc96d9038d2ee7d29247f725b640cb35886a8eb2127b0bf54919d29ad17186075d6b97c8e9ae82ae7b26f409419085421621ea4d87a162f9ace82ad3947216c478ef2b585ed6950958d27d2941aaebf75023735408bb0692d06a4c95a835264ff820801408db0692d06a4c95ac2d233546aa60239396196df697e94134a693f75040138a0417000b800298b46ff7685a4664d8593
maitred 48033530335f921d75d0620d263d4c5761e3a0b4ffbe883d5f0f0d84136d3cf74089f2b585ed6950958d279765f0bd24918a47c2518598da79e648f32cbd295c681287408a416cee5b1649a935537f921d75fdc96d9038d2ee7d29247f725b640cb35886a8eb2127b0bf54919d29ad17186075d6b97c8e9ae82ae7b26f409419085421621ea4d87a162f9ace82ad3947216c478ef2b585ed6950958d27d2941aaebf75023735408bb0692d06a4c95a835264ff820801408db0692d06a4c95ac2d233546aa60239396196df697e94134a693f75040138a0417000b800298b46ff7685a4664d8593
  :status: 503
  content-type: application/problem+json
  content-length: 25488
  x-request-id: 3918ddb2d91ea13b4883c8338fe640f1
  server-timing: app;dur=64.6, db;dur=33
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  retry-after: 75
  ratelimit-limit: 100
  ratelimit-remaining: 99
  date: Tue, 24 Nov 2026 10:00:00 GMT
  server: maitred

hpack 8dc95c837c017f7f0997706dba410e31146d906f38d81e65a6db1bacb3189c8def7f09911d75fdc96d9032d2e1fa5248fee4b6c81dc8c7c6c47f04827defc3c2
nghttp2 8dc80f0d837c017f7f0897706dba410e31146d906f38d81e65a6db1bacb3189c8def7f08911d75fdc96d9032d2e1fa5248fee4b6c81dc7c6c5c37f03023938c2c1
maitred 8dc80f0d837c017f0f3897706dba410e31146d906f38d81e65a6db1bacb3189c8def0f37911d75fdc96d9032d2e1fa5248fee4b6c81dc5c4c3c10f31023938bfbe
  :status: 404
  content-type: application/problem+json
  content-length: 9019
  x-request-id: 6a57c2ab2ea5ca865083455a733b26b8
  server-timing: app;dur=34.1, db;dur=7
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 98
  date: Tue, 24 Nov 2026 10:00:00 GMT
  server: maitred

hpack cecd5c8371a67f7f029723a376471c1ca17e36404765085c8e479d964034508e4f7f02921d75fdc96d903cdaeffd29247f725b640217cccbca758269dfc97f03827ddfc8c7
nghttp2 cccb0f0d033634337f019723a376471c1ca17e36404765085c8e479d964034508e4f7f01921d75fdc96d903cdaeffd29247f725b640217cac9c875023437c77f02023937c6c5
maitred c9c80f0d033634337f089723a376471c1ca17e36404765085c8e479d964034508e4f0f38921d75fdc96d903cdaeffd29247f725b640217c6c5c40f26023437c20f32023937c0bf
  :status: 503
  content-type: application/problem+json
  content-length: 643
  x-request-id: c7a7d66af19b30c7f116bd87fd04e1ad
  server-timing: app;dur=85.9, db;dur=22
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  retry-after: 47
  ratelimit-limit: 100
  ratelimit-remaining: 97
  date: Tue, 24 Nov 2026 10:00:00 GMT
  server: maitred

hpack 897f02960ca0906e01f79e646e95908dc01651bcc8190bd184257f02911d75fdc96d903825d9fa5248fee4b6c81dd0cfcecc7f01827dcf6196df697e94134a693f75040138a0417000b800a98b46ffcb
nghttp2 897f02960ca0906e01f79e646e95908dc01651bcc8190bd184257f02911d75fdc96d903825d9fa5248fee4b6c81dcecdccca7f010239366196df697e94134a693f75040138a0417000b800a98b46ffc9
maitred 890f2f960ca0906e01f79e646e95908dc01651bcc8190bd184250f38911d75fdc96d903825d9fa5248fee4b6c81dc6c5c4c20f320239366196df697e94134a693f75040138a0417000b800a98b46ffc0
  :status: 204
  x-request-id: 1f0da609883a7e31a60efa830318b11e
  server-timing: app;dur=62.3, db;dur=7
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 96
  date: Tue, 24 Nov 2026 10:00:01 GMT
  server: maitred

hpack 488210035f8b1d75d0620d263d4c7441ea5c84136db62f7f059779a65c239189c2882f3520dd6e5746565d1b228e303af77f05911d75fdc96d903a15dffa5248fee4b6c81bd7d6d56e8a63b8583d9216c4301003d47f06827dbfc5d2
nghttp2 488210035f8b1d75d0620d263d4c7441ea0f0d84136db62f7f049779a65c239189c2882f3520dd6e5746565d1b228e303af77f04911d75fdc96d903a15dffa5248fee4b6c81bd4d3d20f1f8a63b8583d9216c4301003d07f04023935c3ce
maitred 488210035f8b1d75d0620d263d4c7441ea0f0d84136db62f4089f2b585ed6950958d279779a65c239189c2882f3520dd6e5746565d1b228e303af70f3c911d75fdc96d903a15dffa5248fee4b6c81bcac9c80f1f8a63b8583d9216c4301003c60f36023935c1c3
  :status: 201
  content-type: application/json
  content-length: 25552
  x-request-id: 8436c6b26e2184da75f7ae37a32bb078
  server-timing: app;dur=71.9, db;dur=5
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  location: /v1/orders/100
  ratelimit-limit: 100
  ratelimit-remaining: 95
  date: Tue, 24 Nov 2026 10:00:01 GMT
  server: maitred

hpack c4c35c83682eb97f039770a014b18d991c21412be400a595d75a944490416471ff7f03921d75fdc96d903cf2ef7d29247f725b640277dcdbda6e8c63b8583d9216c430d3cd322fd97f03827dafcad7
nghttp2 c2c10f0d83682eb97f019770a014b18d991c21412be400a595d75a944490416471ff7f01921d75fdc96d903cf2ef7d29247f725b640277d7d6d50f1f8c63b8583d9216c430d3cd322fd37f01023934c6d1
maitred c0bf0f0d83682eb97e9770a014b18d991c21412be400a595d75a944490416471ff0f3d921d75fdc96d903cf2ef7d29247f725b640277cbcac90f1f8c63b8583d9216c430d3cd322fc70f37023934c2c4
  :status: 201
  content-type: application/json
  content-length: 4176
  x-request-id: 6e02fba3d6ce0f9c02ff774f2cd213ab
  server-timing: app;dur=88.8, db;dur=27
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  location: /v1/orders/48432
  ratelimit-limit: 100
  ratelimit-remaining: 94
  date: Tue, 24 Nov 2026 10:00:01 GMT
  server: maitred

hpack 48826842e35c840bcf01df7f04966630825788168ae9646656e42800f8cb209b000027817f04921d75fdc96d9038caeffd29247f725b640cb9e2e1e0de7f03827d9f6196df697e94134a693f75040138a0417000b801298b46ffdd
nghttp2 48826842dc0f0d840bcf01df7f02966630825788168ae9646656e42800f8cb209b000027817f02921d75fdc96d9038caeffd29247f725b640cb9dbdad9d77f020239336196df697e94134a693f75040138a0417000b801298b46ffd6
maitred 48826842cf0f0d840bcf01df4089f2b585ed6950958d27966630825788168ae9646656e42800f8cb209b000027810f3f921d75fdc96d9038caeffd29247f725b640cb9cdcccbc90f390239336196df697e94134a693f75040138a0417000b801298b46ffc7
  :status: 422
  content-type: application/problem+json
  content-length: 18807
  x-request-id: 3b10f8c14e7ed3f5de009aed25000280
  server-timing: app;dur=63.9, db;dur=36
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 93
  date: Tue, 24 Nov 2026 10:00:02 GMT
  server: maitred

hpack e9e85c840b4f36df7f03978c2210db946c8c4d4b288027c0ccb1bc16de148f3afbff7f03921d75fdc96d90044bb7f4a491fdc96d9032f7e7e6e5758269afe47f04827c5fc3e2
nghttp2 e1e00f0d840b4f36df7f02978c2210db946c8c4d4b288027c0ccb1bc16de148f3afbff7f02921d75fdc96d90044bb7f4a491fdc96d9032f7dfdedd75023434dc7f03023932c2da
maitred d2d10f0d840b4f36df7f00978c2210db946c8c4d4b288027c0ccb1bc16de148f3afbff0f41921d75fdc96d90044bb7f4a491fdc96d9032f7cfcecd0f26023434cb0f3b023932bfc8
  :status: 503
  content-type: application/problem+json
  content-length: 14855
  x-request-id: b122a5fa3a24ff202903fb81582d8799
  server-timing: app;dur=12.5, db;dur=38
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  retry-after: 44
  ratelimit-limit: 100
  ratelimit-remaining: 92
  date: Tue, 24 Nov 2026 10:00:02 GMT
  server: maitred

hpack 8ced5c84132271af7f039791d0392046d352b2291f944f8dd8c64940471d744dbd277f03911d75fdc96d9034b83e94923fb92db20103ecebeae87f02827c3fc7e6
nghttp2 8ce40f0d84132271af7f029791d0392046d352b2291f944f8dd8c64940471d744dbd277f02911d75fdc96d9034b83e94923fb92db20103e3e2e1df7f01023931c5dd
maitred 8cd20f0d84132271af0f2f9791d0392046d352b2291f944f8dd8c64940471d744dbd270f41911d75fdc96d9034b83e94923fb92db20103cfcecdcb0f3b023931bfc8
  :status: 400
  content-type: application/problem+json
  content-length: 23264
  x-request-id: d706d1a44f32d9f29a7bacf0c677258d
  server-timing: app;dur=4.0, db;dur=20
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 91
  date: Tue, 24 Nov 2026 10:00:02 GMT
  server: maitred

hpack 4883684ffff25c840b2f3cf77f039765b24ad4631bee36275b69c281e0be07630b329084787f7f03911d75fdc96d900595dafa5248fee4b6c81bf1f0ef7582681fee7f04827c1f6196df697e94134a693f75040138a0417000b80654c5a37fed
nghttp2 4803343239e80f0d840b2f3cf77f029765b24ad4631bee36275b69c281e0be07630b329084787f7f02911d75fdc96d900595dafa5248fee4b6c81be7e6e575023430e47f030239306196df697e94134a693f75040138a0417000b80654c5a37fe3
maitred 4803343239d30f0d840b2f3cf74089f2b585ed6950958d279765b24ad4631bee36275b69c281e0be07630b329084787f0f43911d75fdc96d900595dafa5248fee4b6c81bd1d0cf0f26023430cd0f3d0239306196df697e94134a693f75040138a0417000b80654c5a37fcb
  :status: 429
  content-type: application/problem+json
  content-length: 13888
  x-request-id: 35cf4baa96527546e081907b13fccc8a
  server-timing: app;dur=13.4, db;dur=5
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  retry-after: 40
  ratelimit-limit: 100
  ratelimit-remaining: 90
  date: Tue, 24 Nov 2026 10:00:03 GMT
  server: maitred

hpack 88de5c8413efbeef7f04977d994457db2c8f3c4001a919190ae38594049651bac87f7f04921d75fdc96d903cdaed7d29247f725b640177f7f6f5f37f038279ffc2f1
nghttp2 88d60f0d8413efbeef7f03977d994457db2c8f3c4001a919190ae38594049651bac87f7f03921d75fdc96d903cdaed7d29247f725b640177ecebeae87f02023839c1e6
maitred 88c70f0d8413efbeef0f30977d994457db2c8f3c4001a919190ae38594049651bac87f0f44921d75fdc96d903cdaed7d29247f725b640177d2d1d0ce0f3e023839becb
  :status: 200
  content-type: application/json
  content-length: 29997
  x-request-id: 93f2e95ed88c004d3ace66ef0cffa731
  server-timing: app;dur=85.4, db;dur=17
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 89
  date: Tue, 24 Nov 2026 10:00:03 GMT
  server: maitred

hpack 88e25c84136ebae77f029613f201a70211bcc9092340109a13457c2464851382277f02921d75fdc96d903ae2e0fa5248fee4b6c802cffbfaf9f77f028279efc6f5
nghttp2 88d90f0d84136ebae77f019613f201a70211bcc9092340109a13457c2464851382277f01921d75fdc96d903ae2e0fa5248fee4b6c802cfefeeedeb7f01023838c4e9
maitred 88c70f0d84136ebae70f309613f201a70211bcc9092340109a13457c2464851382270f44921d75fdc96d903ae2e0fa5248fee4b6c802cfd2d1d0ce0f3e023838becb
  :status: 200
  content-type: application/json
  content-length: 25776
  x-request-id: 29d04611a83ccd4022424e91c3ce262c
  server-timing: app;dur=76.0, db;dur=13
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 88
  date: Tue, 24 Nov 2026 10:00:03 GMT
  server: maitred

hpack 88e65c840bc07ddf7f0297745246ec80904cb608c402bed36d882f85c29492b8cbff7f02921d75fdc96d903afae2fa5248fee4b6c81917ff00fefdfb7f028279df6196df697e94134a693f75040138a0417000b80694c5a37ffa
nghttp2 88dc0f0d840bc07ddf7f0197745246ec80904cb608c402bed36d882f85c29492b8cbff7f01921d75fdc96d903afae2fa5248fee4b6c81917f2f1f0ee7f010238376196df697e94134a693f75040138a0417000b80694c5a37fed
maitred 88c70f0d840bc07ddf0f3097745246ec80904cb608c402bed36d882f85c29492b8cbff0f44921d75fdc96d903afae2fa5248fee4b6c81917d2d1d0ce0f3e0238376196df697e94134a693f75040138a0417000b80694c5a37fcc
  :status: 200
  content-type: application/json
  content-length: 18097
  x-request-id: 72db7d0d2350b20e945521916eecf639
  server-timing: app;dur=79.2, db;dur=32
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 87
  date: Tue, 24 Nov 2026 10:00:04 GMT
  server: maitred

hpack eceb5c836c2eb37f03976d97240472b657881186575a9636a490b24a420c6303bf7f03911d75fdc96d903ceae0fa5248fee4b6c81b5886a8eb2127b0bf54919d29ad17186075d6b97c8e9ae82ae7b26f409419085421621ea4d87a162f9ace82ad3947216c478ef2b585ed6950958d27d2941aaebf6e8c63b8583d9216c430f3ef01df408bb0692d06a4c95a835264ff8208017f088279cfc77685a4664d8593
nghttp2 e1e00f0d836c2eb37f02976d97240472b657881186575a9636a490b24a420c6303bf7f02911d75fdc96d903ceae0fa5248fee4b6c81bf6f5f40f1f8c63b8583d9216c430f3ef01dff27f02023836c1f0
maitred c9c80f0d836c2eb37f01976d97240472b657881186575a9636a490b24a420c6303bf0f46911d75fdc96d903ceae0fa5248fee4b6c81bd4d3d20f1f8c63b8583d9216c430f3ef01dfd00f40023836bfcd
  :status: 201
  content-type: application/json
  content-length: 5173
  x-request-id: 536d0bf5e8c1a1f74fb4ddedfccaaa07
  server-timing: app;dur=87.0, db;dur=5
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  location: /v1/orders/89807
  ratelimit-limit: 100
  ratelimit-remaining: 86
  date: Tue, 24 Nov 2026 10:00:04 GMT
  server: maitred

hpack db5f921d75d0620d263d4c5761e3a0b4ffbe883d5f5c8264217f09976c7238f3924a0742d37195d904f3a528642bcf4718caff7f09921d75fdc96d9038eaed7d29247f725b640173c8c7c6758265efc57f058279bfcec4
nghttp2 d0fa0f0d8264217f01976c7238f3924a0742d37195d904f3a528642bcf4718caff7f01921d75fdc96d9038eaed7d29247f725b640173f9f8f775023338f67f02023835c5f4
maitred c2d70f0d8264217e976c7238f3924a0742d37195d904f3a528642bcf4718caff0f47921d75fdc96d9038eaed7d29247f725b640173d5d4d30f26023338d10f41023835c0ce
  :status: 429
  content-type: application/problem+json
  content-length: 311
  x-request-id: 5ad686df07145be7d287ee1de88bbae9
  server-timing: app;dur=67.4, db;dur=16
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  retry-after: 38
  ratelimit-limit: 100
  ratelimit-remaining: 85
  date: Tue, 24 Nov 2026 10:00:04 GMT
  server: maitred

hpack 4883680fffc45c8374407f7f049765c00db706d3c46c6f05f191e14af0de134e806e0596ff7f04911d75fdc96d903cf2e0fa5248fee4b6c81dcecdccca7f038279af6196df697e94134a693f75040138a0417000b806d4c5a37fca
nghttp2 48033430395f921d75d0620d263d4c5761e3a0b4ffbe883d5f0f0d8374407f7f049765c00db706d3c46c6f05f191e14af0de134e806e0596ff7f04911d75fdc96d903cf2e0fa5248fee4b6c81d5886a8eb2127b0bf54919d29ad17186075d6b97c8e9ae82ae7b26f409419085421621ea4d87a162f9ace82ad3947216c478ef2b585ed6950958d27d2941aaebffe7f060238346196df697e94134a693f75040138a0417000b806d4c5a37ffd
maitred 4803343039d90f0d8374407f4089f2b585ed6950958d279765c00db706d3c46c6f05f191e14af0de134e806e0596ff0f49911d75fdc96d903cf2e0fa5248fee4b6c81dd7d6d5d30f430238346196df697e94134a693f75040138a0417000b806d4c5a37fd1
  :status: 409
  content-type: application/problem+json
  content-length: 7209
  x-request-id: 360a56a48c5a819ac82f8a82470a6135
  server-timing: app;dur=88.0, db;dur=7
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 84
  date: Tue, 24 Nov 2026 10:00:05 GMT
  server: maitred

hpack 8ec95c83085a0f7f03978da71e285d6e511646c2fb858e391f7da0b32c857412977f03921d75fdc96d903205d9fa5248fee4b6c802e7d3d2d1cf7f0382799fc2ce
nghttp2 8ec50f0d83085a0f7f05978da71e285d6e511646c2fb858e391f7da0b32c857412977f05921d75fdc96d903205d9fa5248fee4b6c802e7c4c3c2408bb0692d06a4c95a835264ff8208017f03023833c27685a4664d8593
maitred 8edb0f0d83085a0f0f30978da71e285d6e511646c2fb858e391f7da0b32c857412970f4a921d75fdc96d903205d9fa5248fee4b6c802e7d8d7d6d40f44023833bed1
  :status: 500
  content-type: application/problem+json
  content-length: 1141
  x-request-id: b468e175f2ed5196ebbd99413fde70fe
  server-timing: app;dur=30.3, db;dur=16
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 83
  date: Tue, 24 Nov 2026 10:00:05 GMT
  server: maitred

hpack 897f01960ca19021049285e6401281e1341748d36f8c21904db77f01921d75fdc96d903415c5f4a491fdc96d9032efd6d5d4d27f0182785fc5d1
nghttp2 897f03960ca19021049285e6401281e1341748d36f8c21904db77f03921d75fdc96d903415c5f4a491fdc96d9032efc9c8c7c27f02023832c6c1
maitred 890f30960ca19021049285e6401281e1341748d36f8c21904db70f4a921d75fdc96d903415c5f4a491fdc96d9032efd8d7d6d40f44023832bed1
  :status: 204
  x-request-id: 1f1d110df18301e082417c459a11d255
  server-timing: app;dur=41.2, db;dur=37
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 82
  date: Tue, 24 Nov 2026 10:00:05 GMT
  server: maitred

hpack 48836c0cffd15c8413c075ff7f0397209a08df2b447432b4f086e95b95b091a91a684fb6f8ff7f03921d75fdc96d9036eaeffd29247f725b64026bdbdad975826dbfd87f0482783f6196df697e94134a693f75040138a0417000b80714c5a37fd8
nghttp2 4803353033ce0f0d8413c075ff7f0297209a08df2b447432b4f086e95b95b091a91a684fb6f8ff7f02921d75fdc96d9036eaeffd29247f725b64026bcdcccb75023535c77f030238316196df697e94134a693f75040138a0417000b80714c5a37fc7
maitred dcdb0f0d8413c075ff7f0097209a08df2b447432b4f086e95b95b091a91a684fb6f8ff0f4b921d75fdc96d9036eaeffd29247f725b64026bd9d8d70f26023535d50f450238316196df697e94134a693f75040138a0417000b80714c5a37fd3
  :status: 503
  content-type: application/problem+json
  content-length: 28079
  x-request-id: c241a9e4c71f482a7e5f51c4d442959a
  server-timing: app;dur=57.9, db;dur=24
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  retry-after: 55
  ratelimit-limit: 100
  ratelimit-remaining: 81
  date: Tue, 24 Nov 2026 10:00:06 GMT
  server: maitred

hpack 885f8b1d75d0620d263d4c7441ea5c837c0e3f7f05977648c4e05995e7e46df6ca37ca5788d3c56832be11baff7f05921d75fdc96d9005d5ddfa5248fee4b6c8196fe2e1e0de7f0482781fc3dd
nghttp2 88fe0f0d837c0e3f7f03977648c4e05995e7e46df6ca37ca5788d3c56832be11baff7f03921d75fdc96d9005d5ddfa5248fee4b6c8196fd2d1d0cb7f02023830c1ca
maitred 88cf0f0d837c0e3f0f30977648c4e05995e7e46df6ca37ca5788d3c56832be11baff0f4c921d75fdc96d9005d5ddfa5248fee4b6c8196fdad9d8d60f46023830bed3
  :status: 200
  content-type: application/json
  content-length: 9069
  x-request-id: 7db2613f89d595ea9ee8c48e41f91a79
  server-timing: app;dur=17.7, db;dur=35
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 80
  date: Tue, 24 Nov 2026 10:00:06 GMT
  server: maitred

hpack 88c25c8413827dcf7f02978e31bb289b780fb410c71b6d800d4658c64082519256bf7f02921d75fdc96d9009f5c5f4a491fdc96d9009afe6e5e4e27f028275ffc7e1
nghttp2 885f8b1d75d0620d263d4c7441ea0f0d8413827dcf7f02978e31bb289b780fb410c71b6d800d4658c64082519256bf7f02921d75fdc96d9009f5c5f4a491fdc96d9009afd6d5d4cf7f02023739c5ce
maitred 88cf0f0d8413827dcf0f30978e31bb289b780fb410c71b6d800d4658c64082519256bf0f4c921d75fdc96d9009f5c5f4a491fdc96d9009afdad9d8d60f46023739bed3
  :status: 200
  content-type: application/json
  content-length: 26296
  x-request-id: bba7f25809411bb55004bebac10facf4
  server-timing: app;dur=29.2, db;dur=24
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 79
  date: Tue, 24 Nov 2026 10:00:06 GMT
  server: maitred

hpack dae05c840ba275ff7f029765c7db049190ae0c4f3230b85236fb323ce3cdb6410c5f7f02921d75fdc96d9032caed7d29247f725b640cffeae9e8e67f028275ef6196df697e94134a693f75040138a0417000b80754c5a37fe6
nghttp2 dbda0f0d840ba275ff7f019765c7db049190ae0c4f3230b85236fb323ce3cdb6410c5f7f01921d75fdc96d9032caed7d29247f725b640cffd9d8d7d27f010237386196df697e94134a693f75040138a0417000b80754c5a37fd2
maitred c2dd0f0d840ba275ff7f009765c7db049190ae0c4f3230b85236fb323ce3cdb6410c5f0f4d921d75fdc96d9032caed7d29247f725b640cffdbdad9d70f470237386196df697e94134a693f75040138a0417000b80754c5a37fd5
  :status: 409
  content-type: application/problem+json
  content-length: 17279
  x-request-id: 36950dbce6a283a16ec593d86855c2a2
  server-timing: app;dur=33.4, db;dur=3
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 78
  date: Tue, 24 Nov 2026 10:00:07 GMT
  server: maitred

hpack dfe55c841040173f7f039794acb83784c8a475b1b23900fb6f48c85f6636e46c6fbd7f03921d75fdc96d9038daeefd29247f725b640cffefeeedeb7f038275dfc2ea
nghttp2 dfde0f0d841040173f7f029794acb83784c8a475b1b23900fb6f48c85f6636e46c6fbd7f02921d75fdc96d9038daeefd29247f725b640cffdddcdbd67f02023737c1d5
maitred c4df0f0d841040173f7f009794acb83784c8a475b1b23900fb6f48c85f6636e46c6fbd0f4f921d75fdc96d9038daeefd29247f725b640cffdddcdbd90f49023737bfd6
  :status: 409
  content-type: application/problem+json
  content-length: 21016
  x-request-id: fe36a8232d75a3ad0958d3193b5d5a98
  server-timing: app;dur=65.7, db;dur=3
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 77
  date: Tue, 24 Nov 2026 10:00:07 GMT
  server: maitred

hpack 88cf5c8413af01af7f029771f79f201d7a5136d924032dc6575d7a3646d0843137277f02921d75fdc96d9034caef7d29247f725b64017ff3f2f1ef7f028275cfc6ee
nghttp2 88c80f0d8413af01af7f019771f79f201d7a5136d924032dc6575d7a3646d0843137277f01921d75fdc96d9034caef7d29247f725b64017fe0dfded97f01023736c4d8
maitred 88d20f0d8413af01af0f2f9771f79f201d7a5136d924032dc6575d7a3646d0843137270f4f921d75fdc96d9034caef7d29247f725b64017fdddcdbd90f49023736bfd6
  :status: 200
  content-type: application/json
  content-length: 27804
  x-request-id: 6989c078f255cd035be778b3a422a25d
  server-timing: app;dur=43.8, db;dur=19
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 76
  date: Tue, 24 Nov 2026 10:00:07 GMT
  server: maitred

hpack 88d35c840b6cbc1f7f0297001b195e7da2b63906f3430b2495d1bb215f95a8c2597f7f02911d75fdc96d900576be94923fb92db2010bf7f6f5f37f028275bf6196df697e94134a693f75040138a0417000b80794c5a37ff3
nghttp2 88cb0f0d840b6cbc1f7f0197001b195e7da2b63906f3430b2495d1bb215f95a8c2597f7f01911d75fdc96d900576be94923fb92db2010be3e2e1dc7f010237356196df697e94134a693f75040138a0417000b80794c5a37fdc
maitred 88d20f0d840b6cbc1f0f2f97001b195e7da2b63906f3430b2495d1bb215f95a8c2597f0f4f911d75fdc96d900576be94923fb92db2010bdddcdbd90f490237356196df697e94134a693f75040138a0417000b80794c5a37fd7
  :status: 200
  content-type: application/json
  content-length: 15381
  x-request-id: 005ae894e5ada84a13cf7a7de9f4b1ef
  server-timing: app;dur=1.4, db;dur=22
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 75
  date: Tue, 24 Nov 2026 10:00:08 GMT
  server: maitred

hpack 4883684ffff35c83109e077f0497285e78a568b238f0e42be292423602bcfc83138fca227f7f04921d75fdc96d9005d5dffa5248fee4b6c8196bfdfcfb7582681ffa7f058275afc4f9
nghttp2 4803343239e90f0d83109e077f0397285e78a568b238f0e42be292423602bcfc83138fca227f7f03921d75fdc96d9005d5dffa5248fee4b6c8196be8e7e675023430e27f04023734c3e1
maitred cc5f921d75d0620d263d4c5761e3a0b4ffbe883d5f0f0d83109e077f0197285e78a568b238f0e42be292423602bcfc83138fca227f0f52921d75fdc96d9005d5dffa5248fee4b6c8196be0dfde0f26023430dc0f4c0237346196df697e94134a693f75040138a0417000b80794c5a37fda
  :status: 429
  content-type: application/problem+json
  content-length: 2280
  x-request-id: e188ee4ed68ade92ddc50e89da269f2c
  server-timing: app;dur=17.9, db;dur=34
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  retry-after: 40
  ratelimit-limit: 100
  ratelimit-remaining: 74
  date: Tue, 24 Nov 2026 10:00:08 GMT
  server: maitred

hpack f2f85c8413a1035f7f039765975f69995f08246d91865246eb458e36e37c8fb412b97f03921d75fdc96d903825defa5248fee4b6c804f75886a8eb2127b0bf54919d29ad17186075d6b97c8e9ae82ae7b26f409419085421621ea4d87a162f9ace82ad3947216c478ef2b585ed6950958d27d2941aaebf408bb0692d06a4c95a835264ff8208017f0682759fcc7685a4664d8593
nghttp2 eeed0f0d8413a1035f7f029765975f69995f08246d91865246eb458e36e37c8fb412b97f02921d75fdc96d903825defa5248fee4b6c804f7ecebeae57f01023733c6e4
maitred c95f921d75d0620d263d4c5761e3a0b4ffbe883d5f0f0d8413a1035f7f019765975f69995f08246d91865246eb458e36e37c8fb412b90f55921d75fdc96d903825defa5248fee4b6c804f7e3e2e1df0f4f0237336196df697e94134a693f75040138a0417000b80794c5a37fdd
  :status: 409
  content-type: application/problem+json
  content-length: 27104
  x-request-id: 337943f910d53a1fcb74ebb5b9c941e6
  server-timing: app;dur=62.8, db;dur=28
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 73
  date: Tue, 24 Nov 2026 10:00:08 GMT
  server: maitred

hpack 8e5f921d75d0620d263d4c5761e3a0b4ffbe883d5f5c8413e279ef7f08960b62146c80adbd20dc0c7205e285f70817811900cb217f08911d75fdc96d900177fe94923fb92db20643c7c6c5c47f0482745f6196df697e94134a693f75040138a0417000b807d4c5a37fc4
nghttp2 8ef00f0d8413e279ef7f01960b62146c80adbd20dc0c7205e285f70817811900cb217f01911d75fdc96d900177fe94923fb92db20643efeeede87f010237326196df697e94134a693f75040138a0417000b807d4c5a37fe8
maitred 8e5f921d75d0620d263d4c5761e3a0b4ffbe883d5f0f0d8413e279ef0f31960b62146c80adbd20dc0c7205e285f70817811900cb210f57911d75fdc96d900177fe94923fb92db20643e5e4e3e10f510237320f1296df697e94134a693f75040138a0417000b807d4c5a37fde
  :status: 500
  content-type: application/problem+json
  content-length: 29288
  x-request-id: 1522b30e58da61bd18e196c180bc0331
  server-timing: app;dur=0.9, db;dur=31
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 72
  date: Tue, 24 Nov 2026 10:00:09 GMT
  server: maitred

hpack 897f029769c75e13a290437432b8fca37ca0209f742e38c90720ff7f02921d75fdc96d9005e5c5f4a491fdc96d9009cfcbcac9c87f0282743fc1c7
nghttp2 897f029769c75e13a290437432b8fca37ca0209f742e38c90720ff7f02921d75fdc96d9005e5c5f4a491fdc96d9009cff3f2f1ec7f02023731c1eb
maitred 890f319769c75e13a290437432b8fca37ca0209f742e38c90720ff0f57921d75fdc96d9005e5c5f4a491fdc96d9009cfe5e4e3e10f510237316196df697e94134a693f75040138a0417000b807d4c5a37fdf
  :status: 204
  x-request-id: 4678272d2a71f69fa9e0c2971663cada
  server-timing: app;dur=18.2, db;dur=26
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 71
  date: Tue, 24 Nov 2026 10:00:09 GMT
  server: maitred

hpack 4883680fffc75c84105e0bbf7f0397001d0942e32e8064799708c85e79f79a8caebecca4217f7f03911d75fdc96d9005c5defa5248fee4b6c805d0cfcecd7f0382741fc6cc
nghttp2 f8f70f0d84105e0bbf7f0197001d0942e32e8064799708c85e79f79a8caebecca4217f7f01911d75fdc96d9005c5defa5248fee4b6c805f6f5f4ef7f01023730c4ee
maitred cebf0f0d84105e0bbf7f0297001d0942e32e8064799708c85e79f79a8caebecca4217f0f59911d75fdc96d9005c5defa5248fee4b6c805e7e6e5e30f53023730bfe0
  :status: 409
  content-type: application/problem+json
  content-length: 21817
  x-request-id: 0071e16370ac836c3188984be793fcce
  server-timing: app;dur=16.8, db;dur=2
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 70
  date: Tue, 24 Nov 2026 10:00:09 GMT
  server: maitred

hpack 8ecb5c8413ae81cf7f02976e47404205a20df6db90230c8d46f3f285f08472b6597f7f02921d75fdc96d9034caeefd29247f725b640d7fd4d3d2d17f028271ff6196df697e94134a693f75040138a0417000b810298b46ffd1
nghttp2 8efa0f0d8413ae81cf7f01976e47404205a20df6db90230c8d46f3f285f08472b6597f7f01921d75fdc96d9034caeefd29247f725b640d7ff9f8f7f27f010236396196df697e94134a693f75040138a0417000b810298b46fff2
maitred 8ec00f0d8413ae81cf0f2f976e47404205a20df6db90230c8d46f3f285f08472b6597f0f59921d75fdc96d9034caeefd29247f725b640d7fe7e6e5e30f530236396196df697e94134a693f75040138a0417000b810298b46ffe1
  :status: 500
  content-type: application/problem+json
  content-length: 27706
  x-request-id: 5d70cc14ca955d1a1d4b89f1911af5ef
  server-timing: app;dur=43.7, db;dur=4
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 69
  date: Tue, 24 Nov 2026 10:00:10 GMT
  server: maitred

hpack 8ed05c8379a03b7f039794a09062132495a1006db816dd6c323f1cb1ba465f28bf7f03911d75fdc96d90082b87e94923fb92db2077d9d8d7d67f038271efc2d5
nghttp2 8e5f921d75d0620d263d4c5761e3a0b4ffbe883d5f0f0d8379a03b7f039794a09062132495a1006db816dd6c323f1cb1ba465f28bf7f03911d75fdc96d90082b87e94923fb92db20775886a8eb2127b0bf54919d29ad17186075d6b97c8e9ae82ae7b26f409419085421621ea4d87a162f9ace82ad3947216c478ef2b585ed6950958d27d2941aaebffa7f06023638c5f9
maitred 8ec10f0d8379a03b0f309794a09062132495a1006db816dd6c323f1cb1ba465f28bf0f5a911d75fdc96d90082b87e94923fb92db2077e8e7e6e40f54023638bee1
  :status: 500
  content-type: application/problem+json
  content-length: 8407
  x-request-id: fe0da223cf420a5615751d9bfb7c39e2
  server-timing: app;dur=21.1, db;dur=7
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 68
  date: Tue, 24 Nov 2026 10:00:10 GMT
  server: maitred

hpack 8dd45c8379a0bd7f0297702024857e40bce00a128e3901291e75f132e4ad3cc93f7f02921d75fdc96d9009e5c1f4a491fdc96d90085fdddcdbda7f028271dfc6d9
nghttp2 8dc40f0d8379a0bd7f0497702024857e40bce00a128e3901291e75f132e4ad3cc93f7f04921d75fdc96d9009e5c1f4a491fdc96d90085fc3c2c1fd7f01023637c8fc
maitred 8dc10f0d8379a0bd0f3097702024857e40bce00a128e3901291e75f132e4ad3cc93f0f5a921d75fdc96d9009e5c1f4a491fdc96d90085fe8e7e6e40f54023637bee1
  :status: 404
  content-type: application/problem+json
  content-length: 8418
  x-request-id: 610cde9d1860e1eabd0fc879236f483c
  server-timing: app;dur=28.0, db;dur=22
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 67
  date: Tue, 24 Nov 2026 10:00:10 GMT
  server: maitred

hpack 48826842d95c8413ed382f7f039713ce10231ca4205979d002569c6996c8eb32c657c0367f7f03911d75fdc96d9005a5dcfa5248fee4b6c803e2e1e0df7f038271cf6196df697e94134a693f75040138a0417000b810a98b46ffdf
nghttp2 48826842c80f0d8413ed382f7f029713ce10231ca4205979d002569c6996c8eb32c657c0367f7f02911d75fdc96d9005a5dcfa5248fee4b6c803c7c6c5408bb0692d06a4c95a835264ff8208017f030236366196df697e94134a693f75040138a0417000b810a98b46ff7685a4664d8593
maitred dac10f0d8413ed382f7f009713ce10231ca4205979d002569c6996c8eb32c657c0367f0f5b911d75fdc96d9005a5dcfa5248fee4b6c803e9e8e7e50f550236366196df697e94134a693f75040138a0417000b810a98b46ffe3
  :status: 422
  content-type: application/problem+json
  content-length: 29462
  x-request-id: 286c1aafcc138700f46435c73fbe90a3
  server-timing: app;dur=14.6, db;dur=1
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 66
  date: Tue, 24 Nov 2026 10:00:11 GMT
  server: maitred

hpack 8ede5c84136069bf7f0397948fbee0e56db904fb71bcf04a5209f28db2cb211a641f7f03921d75fdc96d903a15dcfa5248fee4b6c81977e7e6e5e47f038271bfc2e3
nghttp2 8ece0f0d84136069bf7f0497948fbee0e56db904fb71bcf04a5209f28db2cb211a641f7f04921d75fdc96d903a15dcfa5248fee4b6c81977cdcccbc37f03023635c2c1
maitred 8ec30f0d84136069bf0f3097948fbee0e56db904fb71bcf04a5209f28db2cb211a641f0f5c921d75fdc96d903a15dcfa5248fee4b6c81977eae9e8e60f56023635bee3
  :status: 500
  content-type: application/problem+json
  content-length: 25045
  x-request-id: fc996af55d295b881eec29ea5efdc430
  server-timing: app;dur=71.6, db;dur=37
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 65
  date: Tue, 24 Nov 2026 10:00:11 GMT
  server: maitred

hpack c7e25c840b6e32d77f029711197dd7891b4d0246891bc57df708f0db6d92bc41ca1f7f02921d75fdc96d9034f2eefd29247f725b640fffebeae9e87f028271afc6e7
nghttp2 c7d10f0d840b6e32d77f019711197dd7891b4d0246891bc57df708f0db6d92bc41ca1f7f01921d75fdc96d9034f2eefd29247f725b640fffd0cfcec67f01023634c5c4
maitred dcc30f0d840b6e32d77f009711197dd7891b4d0246891bc57df708f0db6d92bc41ca1f0f5d921d75fdc96d9034f2eefd29247f725b640fffebeae9e70f57023634bfe4
  :status: 422
  content-type: application/problem+json
  content-length: 15634
  x-request-id: 2c3978cb440d4cb8e996c8a553e8caf1
  server-timing: app;dur=48.7, db;dur=9
  cache-control: no-store
  access-control-allow-origin: https://app.example.org
  access-control-expose-headers: x-request-id, link
  ratelimit-limit: 100
  ratelimit-remaining: 64
  date: Tue, 24 Nov 2026 10:00:11 GMT
  server: maitred
