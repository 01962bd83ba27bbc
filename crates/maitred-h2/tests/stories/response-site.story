# A site: pages, style sheets, scripts, pictures, what has not changed.

hpack 885f92497ca589d34d1f6a1271d882a60b532acf7f5c8469f704df408bf2b4b60e92ac7ad263d48f84bf834f3f7b91bc73f5317e9484842d695b05443c86aa6f4090f2b10f524b52564faacab1eb498f523f85a8e8a8d2cb408bb0b296cb0b62d59e8313d78840e92ac7b0d31aaf4092258742163d8698d52c7acb516c5ab3d0627a8840e92ac7b0d31aaf5b822d5f6196df697e94134a693f75040138a0417000b800298b46ff7685a4664d8593
nghttp2 885f92497ca589d34d1f6a1271d882a60b532acf7f0f0d8469f704df408bf2b4b60e92ac7ad263d48f0444454e597b91bc73f5317e9484842d695b05443c86aa6f4090f2b10f524b52564faacab1eb498f523f85a8e8a8d2cb408bb0b296cb0b62d59e8313d78840e92ac7b0d31aaf4092258742163d8698d52c7acb516c5ab3d0627a8840e92ac7b0d31aaf5b02656e6196df697e94134a693f75040138a0417000b800298b46ff7685a4664d8593
maitred 885f92497ca589d34d1f6a1271d882a60b532acf7f0f0d8469f704df408bf2b4b60e92ac7ad263d48f0444454e597b91bc73f5317e9484842d695b05443c86aa6f4090f2b10f524b52564faacab1eb498f523f85a8e8a8d2cb408bb0b296cb0b62d59e8313d78840e92ac7b0d31aaf4092258742163d8698d52c7acb516c5ab3d0627a8840e92ac7b0d31aaf5b02656e6196df697e94134a693f75040138a0417000b800298b46ff7685a4664d8593
  :status: 200
  content-type: text/html; charset=utf-8
  content-length: 49625
  x-frame-options: DENY
  vary: Cookie, Accept-Encoding
  x-content-type-options: nosniff
  referrer-policy: same-origin
  cross-origin-opener-policy: same-origin
  content-language: en
  date: Tue, 24 Nov 2026 10:00:00 GMT
  server: maitred

hpack 885f8894f5258f0796517f5c85085a71917f6c96df697e94134a693f75040138a0437197ee01b53168df628cfe5f8c2d4722c58da71bfe7f589aaed8e8313e94a47e561cc58190b6cb80003e943534da91c7417f52848fd24a8fc5c4
nghttp2 885f8894f5258f0796517f0f0d85085a71917f6c96df697e94134a693f75040138a0437197ee01b53168df0f138cfe5f8c2d4722c58da71bfe7f589aaed8e8313e94a47e561cc58190b6cb80003e943534da91c7417f52848fd24a8fc3c2
maitred 880f108894f5258f0796517f0f0d85085a71917f0f1d96df697e94134a693f75040138a0437197ee01b53168df0f138cfe5f8c2d4722c58da71bfe7f589aaed8e8313e94a47e561cc58190b6cb80003e943534da91c7417f52848fd24a8f6196df697e94134a693f75040138a0417000b800298b46ffc1
  :status: 200
  content-type: font/woff2
  content-length: 114632
  last-modified: Tue, 24 Nov 2026 11:39:05 GMT
  etag: "9b14bd-eb465"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:00 GMT
  server: maitred

hpack 8b6291fe4816c6d36d38d371b616caf15f7ddfe7c0c6c5
nghttp2 8b0f1391fe4816c6d36d38d371b616caf15f7ddfe7bfc3c2
maitred 8b0f1391fe4816c6d36d38d371b616caf15f7ddfe7589aaed8e8313e94a47e561cc58190b6cb80003e943534da91c7417f6196df697e94134a693f75040138a0417000b800298b46ffc3
  :status: 304
  etag: "c15a454645b515e8e997"
  cache-control: public, max-age=31536000, immutable
  date: Tue, 24 Nov 2026 10:00:00 GMT
  server: maitred

hpack 885f8b352398ac23bcdfefcd347f5c850b8f09e73f6c96df697e94134a693f75040138a043702cdc680a62d1bf628bfe640024959588db8593f9c4c3cac9
nghttp2 885f8b352398ac23bcdfefcd347f0f0d850b8f09e73f6c96df697e94134a693f75040138a043702cdc680a62d1bf0f138bfe640024959588db8593f9c1c0c5c4
maitred 880f108b352398ac23bcdfefcd347f0f0d850b8f09e73f0f1d96df697e94134a693f75040138a043702cdc680a62d1bf0f138bfe640024959588db8593f9589aaed8e8313e94a47e561cc58190b6cb80003e943534da91c7417fc26196df697e94134a693f75040138a0417000b800298b46ffc5
  :status: 200
  content-type: image/svg+xml
  content-length: 168286
  last-modified: Tue, 24 Nov 2026 11:13:40 GMT
  etag: "d00df3-c56ed"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:00 GMT
  server: maitred

hpack 885f96497ca58e83ee3412c3569fb50938ec415305a99567bf5c84108217996c96df697e94134a693f75040138a04371b66e32da98b46f628cfe5f76470ae2c0786cbffcffc8c7cecd
nghttp2 885f96497ca58e83ee3412c3569fb50938ec415305a99567bf0f0d84108217996c96df697e94134a693f75040138a04371b66e32da98b46f0f138cfe5f76470ae2c0786cbffcffc3c2c7c6
maitred 880f1096497ca58e83ee3412c3569fb50938ec415305a99567bf0f0d84108217990f1d96df697e94134a693f75040138a04371b66e32da98b46f0f138cfe5f76470ae2c0786cbffcff589aaed8e8313e94a47e561cc58190b6cb80003e943534da91c7417fc46196df697e94134a693f75040138a0417000b800298b46ffc7
  :status: 200
  content-type: text/javascript; charset=utf-8
  content-length: 221183
  last-modified: Tue, 24 Nov 2026 11:53:35 GMT
  etag: "97d6e6-08a39"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:00 GMT
  server: maitred

hpack 88c55c85642069d6ff6c96df697e94134a693f75040138a0437196ee36ea98b46f628bfe5e03ef11a58017080fe7cbcad1d0
nghttp2 88c10f0d85642069d6ff6c96df697e94134a693f75040138a0437196ee36ea98b46f0f138bfe5e03ef11a58017080fe7c4c3c8c7
maitred 880f108b352398ac23bcdfefcd347f0f0d85642069d6ff0f1d96df697e94134a693f75040138a0437196ee36ea98b46f0f138bfe5e03ef11a58017080fe7589aaed8e8313e94a47e561cc58190b6cb80003e943534da91c7417fc66196df697e94134a693f75040138a0417000b800298b46ffc9
  :status: 200
  content-type: image/svg+xml
  content-length: 310475
  last-modified: Tue, 24 Nov 2026 11:35:57 GMT
  etag: "8098c4-016c0"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:00 GMT
  server: maitred

hpack 88c85c8565b0bce8bf6c96df697e94134a693f75040138a0437000b820a98b46ff628bfe48fc61642b15d03e0fe7cecd6196df697e94134a693f75040138a0417000b800a98b46ffd4
nghttp2 88c20f0d8565b0bce8bf6c96df697e94134a693f75040138a0437000b820a98b46ff0f138bfe48fc61642b15d03e0fe7c5c46196df697e94134a693f75040138a0417000b800a98b46ffc9
maitred 885f8b352398ac23bcdfefcd347f0f0d8565b0bce8bf0f1d96df697e94134a693f75040138a0437000b820a98b46ff0f138bfe48fc61642b15d03e0fe7589aaed8e8313e94a47e561cc58190b6cb80003e943534da91c7417fc90f1296df697e94134a693f75040138a0417000b800a98b46ffcb
  :status: 200
  content-type: image/svg+xml
  content-length: 351872
  last-modified: Tue, 24 Nov 2026 11:00:21 GMT
  etag: "c9b131-e7090"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:01 GMT
  server: maitred

hpack 8b6291fe42ec7201b1c8cc6d0e571c2caeb2f7f3d0bfd5
nghttp2 8b0f1391fe42ec7201b1c8cc6d0e571c2caeb2f7f3c6bec9
maitred 8b0f1391fe42ec7201b1c8cc6d0e571c2caeb2f7f3be6196df697e94134a693f75040138a0417000b800a98b46ffcc
  :status: 304
  etag: "17bd05ad3b4af66ef738"
  cache-control: public, max-age=31536000, immutable
  date: Tue, 24 Nov 2026 10:00:01 GMT
  server: maitred

hpack 88de5c83684e0bdddcdbdad9d8c0d6
nghttp2 88d10f0d83684e0bd0cfcecdcccbbec9
maitred 88d40f0d83684e0bd3d2d1d0cfcebecc
  :status: 200
  content-type: text/html; charset=utf-8
  content-length: 4262
  x-frame-options: DENY
  vary: Cookie, Accept-Encoding
  x-content-type-options: nosniff
  referrer-policy: same-origin
  cross-origin-opener-policy: same-origin
  content-language: en
  date: Tue, 24 Nov 2026 10:00:01 GMT
  server: maitred

hpack 88d55c85132fb6cbdf6c96df697e94134a693f75040138a04371b0dc0094c5a37f628bfe5e74256da59a6c6473f9d4d3c3d9
nghttp2 88c80f0d85132fb6cbdf6c96df697e94134a693f75040138a04371b0dc0094c5a37f0f138bfe5e74256da59a6c6473f9c7c6bfca
maitred 885f8894f5258f0796517f0f0d85132fb6cbdf0f1d96df697e94134a693f75040138a04371b0dc0094c5a37f0f138bfe5e74256da59a6c6473f9c0cbbfcd
  :status: 200
  content-type: font/woff2
  content-length: 239538
  last-modified: Tue, 24 Nov 2026 11:51:02 GMT
  etag: "871e54-45ac6"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:01 GMT
  server: maitred

hpack 88d15c8465d6de776c96df697e94134a693f75040138a0437196ae36ea98b46f628bfe5b7dc91e2ac064a56ff9d7d6c6dc
nghttp2 88c50f0d8465d6de776c96df697e94134a693f75040138a0437196ae36ea98b46f0f138bfe5b7dc91e2ac064a56ff9c8c7c0cb
maitred 88c10f0d8465d6de770f1d96df697e94134a693f75040138a0437196ae36ea98b46f0f138bfe5b7dc91e2ac064a56ff9c0cbbfcd
  :status: 200
  content-type: image/svg+xml
  content-length: 37587
  last-modified: Tue, 24 Nov 2026 11:34:57 GMT
  etag: "596d8e-03ee5"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:01 GMT
  server: maitred

hpack 88db5c85644fb8cb9f6c96df697e94134a693f75040138a04371b05c69b53168df628bfe5f20e491c59d10052ff3dad9c9df
nghttp2 88ca0f0d85644fb8cb9f6c96df697e94134a693f75040138a04371b05c69b53168df0f138bfe5f20e491c59d10052ff3c9c8c1cc
maitred 88be0f0d85644fb8cb9f0f1d96df697e94134a693f75040138a04371b05c69b53168df0f138bfe5f20e491c59d10052ff3c0cbbfcd
  :status: 200
  content-type: font/woff2
  content-length: 329636
  last-modified: Tue, 24 Nov 2026 11:50:45 GMT
  etag: "9cadd6-7202f"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:01 GMT
  server: maitred

hpack 8b6291fe5d289a2bef3ef3442b2f9402214bfcffdb6196df697e94134a693f75040138a0417000b801298b46ffe1
nghttp2 8b0f1391fe5d289a2bef3ef3442b2f9402214bfcffc96196df697e94134a693f75040138a0417000b801298b46ffcd
maitred 8b0f1391fe5d289a2bef3ef3442b2f9402214bfcffc06196df697e94134a693f75040138a0417000b801298b46ffce
  :status: 304
  etag: "7e24e98984ce39e02cee"
  cache-control: public, max-age=31536000, immutable
  date: Tue, 24 Nov 2026 10:00:02 GMT
  server: maitred

hpack 88e05c8513a16db67f6c96df697e94134a693f75040138a0437022b8d3ea62d1bf628bfe48e8991bab32f38d03f9dfdec1e4
nghttp2 88cc0f0d8513a16db67f6c96df697e94134a693f75040138a0437022b8d3ea62d1bf0f138bfe48e8991bab32f38d03f9cbcabfce
maitred 88bf0f0d8513a16db67f0f1d96df697e94134a693f75040138a0437022b8d3ea62d1bf0f138bfe48e8991bab32f38d03f9c1ccbece
  :status: 200
  content-type: font/woff2
  content-length: 271553
  last-modified: Tue, 24 Nov 2026 11:12:49 GMT
  etag: "c723a7-38640"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:02 GMT
  server: maitred

hpack 885f87352398ac0fb9a55c8469f6df6f6c96df697e94134a693f75040138a0437021b81714c5a37f628bfe42ebc00b6b46cbed97f9e3e2c5e8
nghttp2 885f87352398ac0fb9a50f0d8469f6df6f6c96df697e94134a693f75040138a0437021b81714c5a37f0f138bfe42ebc00b6b46cbed97f9cdccc1d0
maitred 885f87352398ac0fb9a50f0d8469f6df6f0f1d96df697e94134a693f75040138a0437021b81714c5a37f0f138bfe42ebc00b6b46cbed97f9c2cdbfcf
  :status: 200
  content-type: image/avif
  content-length: 49595
  last-modified: Tue, 24 Nov 2026 11:11:16 GMT
  etag: "178015-b395e"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:02 GMT
  server: maitred

hpack 88e05c85136e01d6bf6c96df697e94134a693f75040138a04371915c134a62d1bf628cfe5f238d3eeacc95b1b7fcffe6e5c8eb
nghttp2 88cb0f0d85136e01d6bf6c96df697e94134a693f75040138a04371915c134a62d1bf0f138cfe5f238d3eeacc95b1b7fcffcecdc2d1
maitred 88c30f0d85136e01d6bf0f1d96df697e94134a693f75040138a04371915c134a62d1bf0f138cfe5f238d3eeacc95b1b7fcffc2cdbfcf
  :status: 200
  content-type: image/svg+xml
  content-length: 256074
  last-modified: Tue, 24 Nov 2026 11:32:24 GMT
  etag: "9c6497-3e5a5"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:02 GMT
  server: maitred

hpack 88f45c84784e38d7f3f2f1f0efeec9ec
nghttp2 88d90f0d84784e38d7d8d7d6d5d4d3c2d1
maitred 88d70f0d84784e38d7d6d5d4d3d2d1bfcf
  :status: 200
  content-type: text/html; charset=utf-8
  content-length: 82664
  x-frame-options: DENY
  vary: Cookie, Accept-Encoding
  x-content-type-options: nosniff
  referrer-policy: same-origin
  cross-origin-opener-policy: same-origin
  content-language: en
  date: Tue, 24 Nov 2026 10:00:02 GMT
  server: maitred

hpack 8b6291fe6514a028231bad925788075b8c61fe7fe8caed
nghttp2 8b0f1391fe6514a028231bad925788075b8c61fe7fcec2d1
maitred 8b0f1391fe6514a028231bad925788075b8c61fe7fc2bfcf
  :status: 304
  etag: "f2f0e0ba75cf8c075ba1"
  cache-control: public, max-age=31536000, immutable
  date: Tue, 24 Nov 2026 10:00:02 GMT
  server: maitred

hpack 88ec5c847d96402f6c96df697e94134a693f75040138a04371a66e36f298b46f628cfe5b101e148b48f331b7fcffebea6196df697e94134a693f75040138a0417000b80654c5a37ff1
nghttp2 88d00f0d847d96402f6c96df697e94134a693f75040138a04371a66e36f298b46f0f138cfe5b101e148b48f331b7fcffcfce6196df697e94134a693f75040138a0417000b80654c5a37fd3
maitred 88c00f0d847d96402f0f1d96df697e94134a693f75040138a04371a66e36f298b46f0f138cfe5b101e148b48f331b7fcffc2cd6196df697e94134a693f75040138a0417000b80654c5a37fd0
  :status: 200
  content-type: font/woff2
  content-length: 93302
  last-modified: Tue, 24 Nov 2026 11:43:58 GMT
  etag: "52082d-d83b5"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:03 GMT
  server: maitred

hpack 885f91497ca582211f6a1271d882a60b532acf7f5c85136d3ae87f6c96df697e94134a693f75040138a0437040b827d4c5a37f628bfe632140375603e46dafe7f0efc2f5
nghttp2 885f91497ca582211f6a1271d882a60b532acf7f0f0d85136d3ae87f6c96df697e94134a693f75040138a0437040b827d4c5a37f0f138bfe632140375603e46dafe7d2d1c0d5
maitred 885f91497ca582211f6a1271d882a60b532acf7f0f0d85136d3ae87f0f1d96df697e94134a693f75040138a0437040b827d4c5a37f0f138bfe632140375603e46dafe7c4cfbfd1
  :status: 200
  content-type: text/css; charset=utf-8
  content-length: 254771
  last-modified: Tue, 24 Nov 2026 11:20:29 GMT
  etag: "bce0a7-09c54"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:03 GMT
  server: maitred

hpack 88e95c85640eb8077f6c96df697e94134a693f75040138a043704d5c682a62d1bf628bfe4af38e8a359c28805fe7f3f2c5f8
nghttp2 88ce0f0d85640eb8077f6c96df697e94134a693f75040138a043704d5c682a62d1bf0f138bfe4af38e8a359c28805fe7d3d2c1d6
maitred 880f1096497ca58e83ee3412c3569fb50938ec415305a99567bf0f0d85640eb8077f0f1d96df697e94134a693f75040138a043704d5c682a62d1bf0f138bfe4af38e8a359c28805fe7c4cfbfd1
  :status: 200
  content-type: text/javascript; charset=utf-8
  content-length: 307607
  last-modified: Tue, 24 Nov 2026 11:24:41 GMT
  etag: "e8672b-6e20e"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:03 GMT
  server: maitred

hpack 88c45c850b826d973f6c96df697e94134a693f75040138a04371976e09a53168df628bfe4318c6079669c0c8fff3f6f5c8fb
nghttp2 88c00f0d850b826d973f6c96df697e94134a693f75040138a04371976e09a53168df0f138bfe4318c6079669c0c8fff3d4d3c2d7
maitred 88be0f0d850b826d973f0f1d96df697e94134a693f75040138a04371976e09a53168df0f138bfe4318c6079669c0c8fff3c4cfbfd1
  :status: 200
  content-type: text/css; charset=utf-8
  content-length: 162536
  last-modified: Tue, 24 Nov 2026 11:37:24 GMT
  etag: "1baa08-461d9"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:03 GMT
  server: maitred

hpack 8b6291fe4a191e78246652b6cb427997a4903fcff7c9fc
nghttp2 8b0f1391fe4a191e78246652b6cb427997a4903fcfd4c2d7
maitred 8b0f1391fe4a191e78246652b6cb427997a4903fcfc4bfd1
  :status: 304
  etag: "e1d881c3fe5342838dd1"
  cache-control: public, max-age=31536000, immutable
  date: Tue, 24 Nov 2026 10:00:03 GMT
  server: maitred

hpack 88c85c836c216f6c96df697e94134a693f75040138a0437196ae32253168df628bfe444688fbcb09972327f3faf9ccff00
nghttp2 88c10f0d836c216f6c96df697e94134a693f75040138a0437196ae32253168df0f138bfe444688fbcb09972327f3d5d4c3d8
maitred 88be0f0d836c216f0f1d96df697e94134a693f75040138a0437196ae32253168df0f138bfe444688fbcb09972327f3c4cfbfd1
  :status: 200
  content-type: text/css; charset=utf-8
  content-length: 5115
  last-modified: Tue, 24 Nov 2026 11:34:32 GMT
  etag: "2c4c98-236bc"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:03 GMT
  server: maitred

hpack 885f92497ca589d34d1f6a1271d882a60b532acf7f5c841000eb7f408bf2b4b60e92ac7ad263d48f84bf834f3f7b91bc73f5317e9484842d695b05443c86aa6f4090f2b10f524b52564faacab1eb498f523f85a8e8a8d2cb408bb0b296cb0b62d59e8313d78840e92ac7b0d31aaf4092258742163d8698d52c7acb516c5ab3d0627a8840e92ac7b0d31aaf5b822d5f6196df697e94134a693f75040138a0417000b80694c5a37f7685a4664d8593
nghttp2 88e00f0d841000eb7fdfdedddcdbda6196df697e94134a693f75040138a0417000b80694c5a37fd9
maitred 88d90f0d841000eb7fd8d7d6d5d4d36196df697e94134a693f75040138a0417000b80694c5a37fd2
  :status: 200
  content-type: text/html; charset=utf-8
  content-length: 20075
  x-frame-options: DENY
  vary: Cookie, Accept-Encoding
  x-content-type-options: nosniff
  referrer-policy: same-origin
  cross-origin-opener-policy: same-origin
  content-language: en
  date: Tue, 24 Nov 2026 10:00:04 GMT
  server: maitred

hpack 88ff025c850b4ebad0bf6c96df697e94134a693f75040138a04371a6ae32d298b46f628bfe5f784cb6459b65b293f9589aaed8e8313e94a47e561cc58190b6cb80003e943534da91c7417f52848fd24a8fc4c3
nghttp2 88d40f0d850b4ebad0bf6c96df697e94134a693f75040138a04371a6ae32d298b46f0f138bfe5f784cb6459b65b293f9d7d6bfda
maitred 88c60f0d850b4ebad0bf0f1d96df697e94134a693f75040138a04371a6ae32d298b46f0f138bfe5f784cb6459b65b293f9c5d0bed2
  :status: 200
  content-type: image/svg+xml
  content-length: 147742
  last-modified: Tue, 24 Nov 2026 11:44:34 GMT
  etag: "98235c-535ec"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:04 GMT
  server: maitred

hpack 885f8894f5258f0796517f5c836c4f396c96df697e94134a693f75040138a0437042b827d4c5a37f628cfe6495a6871acd85f95dfe7fc3c2c8c7
nghttp2 88d90f0d836c4f396c96df697e94134a693f75040138a0437042b827d4c5a37f0f138cfe6495a6871acd85f95dfe7fd8d7c0db
maitred 88c30f0d836c4f390f1d96df697e94134a693f75040138a0437042b827d4c5a37f0f138cfe6495a6871acd85f95dfe7fc5d0bed2
  :status: 200
  content-type: font/woff2
  content-length: 5286
  last-modified: Tue, 24 Nov 2026 11:22:29 GMT
  etag: "df44ab-519f7"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:04 GMT
  server: maitred

hpack 8b6291fe4251b7190ad3ee471b631004cb40fe7fc4c9c8
nghttp2 8b0f1391fe4251b7190ad3ee471b631004cb40fe7fd8c0db
maitred 8b0f1391fe4251b7190ad3ee471b631004cb40fe7fc5bed2
  :status: 304
  etag: "1ea5bce496bb5a202340"
  cache-control: public, max-age=31536000, immutable
  date: Tue, 24 Nov 2026 10:00:04 GMT
  server: maitred

hpack 885f96497ca58e83ee3412c3569fb50938ec415305a99567bf5c8513cd3a10ff6c96df697e94134a693f75040138a0437001b8d894c5a37f628bfe6313258e35872940dff3c8c7cdcc
nghttp2 88d40f0d8513cd3a10ff6c96df697e94134a693f75040138a0437001b8d894c5a37f0f138bfe6313258e35872940dff3d9d8c1dc
maitred 885f96497ca58e83ee3412c3569fb50938ec415305a99567bf0f0d8513cd3a10ff0f1d96df697e94134a693f75040138a0437001b8d894c5a37f0f138bfe6313258e35872940dff3c6d1bfd3
  :status: 200
  content-type: text/javascript; charset=utf-8
  content-length: 284711
  last-modified: Tue, 24 Nov 2026 11:01:52 GMT
  etag: "b23ebb-afe05"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:04 GMT
  server: maitred

hpack 885f8b352398ac23bcdfefcd347f5c8513ef38f8bf6c96df697e94134a693f75040138a04371b6ee34253168df628cfe5f69c209b599748ec7fcffcccbd1d0
nghttp2 88d70f0d8513ef38f8bf6c96df697e94134a693f75040138a04371b6ee34253168df0f138cfe5f69c209b599748ec7fcffdad9c2dd
maitred 88c70f0d8513ef38f8bf0f1d96df697e94134a693f75040138a04371b6ee34253168df0f138cfe5f69c209b599748ec7fcffc6d1bfd3
  :status: 200
  content-type: image/svg+xml
  content-length: 298692
  last-modified: Tue, 24 Nov 2026 11:55:42 GMT
  etag: "946c25-37c7b"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:04 GMT
  server: maitred

hpack 88e75c85081f742cff6c96df697e94134a693f75040138a04371966e32da98b46f628bfe442684002c110461fe7fcfce6196df697e94134a693f75040138a0417000b806d4c5a37fd4
nghttp2 88c70f0d85081f742cff6c96df697e94134a693f75040138a04371966e32da98b46f0f138bfe442684002c110461fe7fdbda6196df697e94134a693f75040138a0417000b806d4c5a37fdf
maitred 88c00f0d85081f742cff0f1d96df697e94134a693f75040138a04371966e32da98b46f0f138bfe442684002c110461fe7fc6d16196df697e94134a693f75040138a0417000b806d4c5a37fd4
  :status: 200
  content-type: text/css; charset=utf-8
  content-length: 109713
  last-modified: Tue, 24 Nov 2026 11:33:35 GMT
  etag: "224200-121a1"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:05 GMT
  server: maitred

hpack 88eb5c8308841f6c96df697e94134a693f75040138a04371b7ee09d53168df628cfe63032cb2259924924bfcffd3d2c1d7
nghttp2 88c90f0d8308841f6c96df697e94134a693f75040138a04371b7ee09d53168df0f138cfe63032cb2259924924bfcffdddcbfe0
maitred 88c10f0d8308841f0f1d96df697e94134a693f75040138a04371b7ee09d53168df0f138cfe63032cb2259924924bfcffc7d2bed4
  :status: 200
  content-type: text/css; charset=utf-8
  content-length: 1221
  last-modified: Tue, 24 Nov 2026 11:59:27 GMT
  etag: "b03332-3cddf"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:05 GMT
  server: maitred

hpack 88e05c8471c684f7dfdedddcdbdac2d8
nghttp2 88e80f0d8471c684f7e7e6e5e4e3e2bfe0
maitred 88dc0f0d8471c684f7dbdad9d8d7d6bed4
  :status: 200
  content-type: text/html; charset=utf-8
  content-length: 66428
  x-frame-options: DENY
  vary: Cookie, Accept-Encoding
  x-content-type-options: nosniff
  referrer-policy: same-origin
  cross-origin-opener-policy: same-origin
  content-language: en
  date: Tue, 24 Nov 2026 10:00:05 GMT
  server: maitred

hpack 88d25c8475d7de676c96df697e94134a693f75040138a043702ddc1054c5a37f628bfe5c7592108b084171efe7d7d6c5db
nghttp2 88df0f0d8475d7de676c96df697e94134a693f75040138a043702ddc1054c5a37f0f138bfe5c7592108b084171efe7deddc0e1
maitred 88c50f0d8475d7de670f1d96df697e94134a693f75040138a043702ddc1054c5a37f0f138bfe5c7592108b084171efe7c7d2bed4
  :status: 200
  content-type: font/woff2
  content-length: 77983
  last-modified: Tue, 24 Nov 2026 11:15:21 GMT
  etag: "673ccc-22168"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:05 GMT
  server: maitred

hpack 88cc5c850b6d3a167f6c96df697e94134a693f75040138a0437197ae32ca98b46f628bfe5f6c2d3645860682e7f3dad9c8de
nghttp2 88dc0f0d850b6d3a167f6c96df697e94134a693f75040138a0437197ae32ca98b46f0f138bfe5f6c2d3645860682e7f3dfdec1e2
maitred 88c80f0d850b6d3a167f0f1d96df697e94134a693f75040138a0437197ae32ca98b46f0f138bfe5f6c2d3645860682e7f3c7d2bed4
  :status: 200
  content-type: image/svg+xml
  content-length: 154713
  last-modified: Tue, 24 Nov 2026 11:38:33 GMT
  etag: "95145c-a0416"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:05 GMT
  server: maitred

hpack 88ff035c8513acb4e8bf6c96df697e94134a693f75040138a0437021b81794c5a37f628bfe452ca50956189f665fe7dddccbe1
nghttp2 88d10f0d8513acb4e8bf6c96df697e94134a693f75040138a0437021b81794c5a37f0f138bfe452ca50956189f665fe7e0dfc2e3
maitred 88c30f0d8513acb4e8bf0f1d96df697e94134a693f75040138a0437021b81794c5a37f0f138bfe452ca50956189f665fe7c7d2bed4
  :status: 200
  content-type: image/avif
  content-length: 273472
  last-modified: Tue, 24 Nov 2026 11:11:18 GMT
  etag: "2ffe1e-a293f"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:05 GMT
  server: maitred

hpack 88f85c850bc169d67f6c96df697e94134a693f75040138a043702f5c6dd53168df628bfe59948ebcfac5146377f9e0df6196df697e94134a693f75040138a0417000b80714c5a37fe5
nghttp2 88cd0f0d850bc169d67f6c96df697e94134a693f75040138a043702f5c6dd53168df0f138bfe59948ebcfac5146377f9e1e06196df697e94134a693f75040138a0417000b80714c5a37fe5
maitred 88c10f0d850bc169d67f0f1d96df697e94134a693f75040138a043702f5c6dd53168df0f138bfe59948ebcfac5146377f9c7d26196df697e94134a693f75040138a0417000b80714c5a37fd5
  :status: 200
  content-type: text/css; charset=utf-8
  content-length: 181473
  last-modified: Tue, 24 Nov 2026 11:18:57 GMT
  etag: "3fc789-e2ba7"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:06 GMT
  server: maitred

hpack 8b6291fe5f13af34403848c2d3ad0d92bad8ff9fe2bfe6
nghttp2 8b0f1391fe5f13af34403848c2d3ad0d92bad8ff9fe2bee5
maitred 8b0f1391fe5f13af34403848c2d3ad0d92bad8ff9fc8bed5
  :status: 304
  etag: "92784c06cb1474a3e75a"
  cache-control: public, max-age=31536000, immutable
  date: Tue, 24 Nov 2026 10:00:06 GMT
  server: maitred

hpack 88e05c85644fb4c87f6c96df697e94134a693f75040138a0437196ae01d53168df628bfe5904a26dc5a4111c67f9e5e4c2e9
nghttp2 88e40f0d85644fb4c87f6c96df697e94134a693f75040138a0437196ae01d53168df0f138bfe5904a26dc5a4111c67f9e3e2bfe6
maitred 88c60f0d85644fb4c87f0f1d96df697e94134a693f75040138a0437196ae01d53168df0f138bfe5904a26dc5a4111c67f9c8d3bed5
  :status: 200
  content-type: font/woff2
  content-length: 329431
  last-modified: Tue, 24 Nov 2026 11:34:07 GMT
  etag: "30f256-d2c63"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:06 GMT
  server: maitred

hpack 88de5c8375f7816c96df697e94134a693f75040138a0437001b8dbea62d1bf628bfe42eb5280ab1002139fcfe8e7c5ec
nghttp2 88df0f0d8375f7816c96df697e94134a693f75040138a0437001b8dbea62d1bf0f138bfe42eb5280ab1002139fcfe4e3c0e7
maitred 88c00f0d8375f7810f1d96df697e94134a693f75040138a0437001b8dbea62d1bf0f138bfe42eb5280ab1002139fcfc8d3bed5
  :status: 200
  content-type: text/javascript; charset=utf-8
  content-length: 7980
  last-modified: Tue, 24 Nov 2026 11:01:59 GMT
  etag: "174f0e-c0226"
  cache-control: public, max-age=31536000, immutable
  accept-ranges: bytes
  date: Tue, 24 Nov 2026 10:00:06 GMT
  server: maitred
