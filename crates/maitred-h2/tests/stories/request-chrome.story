# Chrome: calls of an application by fetch, some conditional, some with a body.

hpack 8287418b1d75ae5f23a6ba0ab9ec9b449a6075998ee260c92d2861a1341ff2531689110543a4bf55d8621740874148b1275ad1ffb8fe6f4f61e935b4ff3f7de0fe42d0bf9fa53f9c473cd4154bd3d87a4bfcfdf783f90b42fe7e94fe749d3142a5db07549fcfdf783f97dffe7f408b4148b1275ad1ad49e3350582ff01408d4148b1275ad1ad5d034ca7b29f88fe791aa90fe11fcf7ad5d07f66a281b0dae053fae46aa43f8429a77a8102e0fb5391aa71afb53cb8d7f6a435d74179163cc64b0db2eaecb8a7f59b1efd19fe94a0dd4aa62293a9ffb52f4f61e92b01684b81702e05370e51d8661b65d5d9735383f963e7408a4148b4a549275906497f8840e92ac7b0d31aaf408a4148b4a549275a93c85f8321ec47408a4148b4a549275a42a13f842d35a7d750929bd9abfa5242cb40d25fa523b3e94f684c9f519390ab5fc1f5217efb4005dffa2d5f7da002ef7f6990e4c7f230099708523d20247a369cfe7f6896df697e94134a693f75040138a0417000b800298b46ff
nghttp2 8287418b1d75ae5f23a6ba0ab9ec9b049a6075998ee260c92d2861a1341ff2531689110543a4bf55d8621740874148b1275ad1ffb8fe6f4f61e935b4ff3f7de0fe42d0bf9fa53f9c473cd4154bd3d87a4bfcfdf783f90b42fe7e94fe749d3142a5db07549fcfdf783f97dffe7f408b4148b1275ad1ad49e33505023f30408d4148b1275ad1ad5d034ca7b29f88fe791aa90fe11fcf7ad5d07f66a281b0dae053fae46aa43f8429a77a8102e0fb5391aa71afb53cb8d7f6a435d74179163cc64b0db2eaecb8a7f59b1efd19fe94a0dd4aa62293a9ffb52f4f61e92b01684b81702e05370e51d8661b65d5d97353032a2f2a408a4148b4a549275906497f8840e92ac7b0d31aaf408a4148b4a549275a93c85f8321ec47408a4148b4a549275a42a13f842d35a7d750929bd9abfa5242cb40d25fa523b3e94f684c9f519390ab5fc1f5217efb4005dffa2d5f7da002ef7f0f1a90e4c7f230099708523d20247a369cfe7f0f1996df697e94134a693f75040138a0417000b800298b46ff
maitred 8287418b1d75ae5f23a6ba0ab9ec9b449a6075998ee260c92d2861a1341ff2531689110543a4bf55d8621740874148b1275ad1ffb8fe6f4f61e935b4ff3f7de0fe42d0bf9fa53f9c473cd4154bd3d87a4bfcfdf783f90b42fe7e94fe749d3142a5db07549fcfdf783f97dffe7f408b4148b1275ad1ad49e33505023f30408d4148b1275ad1ad5d034ca7b29f88fe791aa90fe11fcf7ad5d07f66a281b0dae053fae46aa43f8429a77a8102e0fb5391aa71afb53cb8d7f6a435d74179163cc64b0db2eaecb8a7f59b1efd19fe94a0dd4aa62293a9ffb52f4f61e92b01684b81702e05370e51d8661b65d5d97353032a2f2a408a4148b4a549275906497f8840e92ac7b0d31aaf408a4148b4a549275a93c85f8321ec47408a4148b4a549275a42a13f842d35a7d750929bd9abfa5242cb40d25fa523b3e94f684c9f519390ab5fc1f5217efb4005dffa2d5f7da002ef7f6990e4c7f230099708523d20247a369cfe7f6896df697e94134a693f75040138a0417000b800298b46ff
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/4241?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8
  if-none-match: W/"a0236cec8d0d8b46"
  if-modified-since: Tue, 24 Nov 2026 10:00:00 GMT

hpack 8387cb44896075998ee260c92d285c830bad3f5f8b1d75d0620d263d4c7441ea4089f2b11164ab24fd4b57938aa49771a7fc3b2fe7c782167a6fe09ba9fc7b40853d8698d57f919d29ad17186075d6b97c8e9ae82ae7b26fcecdcccbcac9c8c7c6c5
nghttp2 8387c804896075998ee260c92d280f0d830bad3f5f8b1d75d0620d263d4c7441ea4089f2b11164ab24fd4b57938aa49771a7fc3b2fe7c782167a6fe09ba9fc7b40853d8698d57f919d29ad17186075d6b97c8e9ae82ae7b26fcac9c8c7c6c5c4c3c2c1
maitred 8387cb04896075998ee260c92d280f0d830bad3f5f8b1d75d0620d263d4c7441ea1089f2b11164ab24fd4b57938aa49771a7fc3b2fe7c782167a6fe09ba9fc7b40853d8698d57f919d29ad17186075d6b97c8e9ae82ae7b26fcbcac9c8c7c6c5c4c3c2
  :method: POST
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items
  content-length: 1749
  content-type: application/json
  x-csrf-token: _nteSihXo39LHEA3jTUtBtX8
  origin: https://app.example.org
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287d044996075998ee260c92d286022ff2531689110543a4bf55d86217fcfcecdcccbcac9c8c7c6
nghttp2 8287cb04996075998ee260c92d286022ff2531689110543a4bf55d86217fcac9c8c7c6c5c4c3c2c1
maitred 8287cd04996075998ee260c92d286022ff2531689110543a4bf55d86217fcbcac9c8c7c6c5c4c3c2
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/12?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287d1449a6075998ee260c92d2861e7dc7ffc94c5a2444150e92fd5761885d0cfcecdcccbcac9c8c76990e4c7f2203f181b1bd248c8cb2cb27f3f6896df697e94134a693f75040138a041700d5c6c2a62d1bf
nghttp2 8287cb049a6075998ee260c92d2861e7dc7ffc94c5a2444150e92fd5761885cac9c8c7c6c5c4c3c2c10f1a90e4c7f2203f181b1bd248c8cb2cb27f3f0f1996df697e94134a693f75040138a041700d5c6c2a62d1bf
maitred 8287cd049a6075998ee260c92d2861e7dc7ffc94c5a2444150e92fd5761885cbcac9c8c7c6c5c4c3c20f1a90e4c7f2203f181b1bd248c8cb2cb27f3f0f1996df697e94134a693f75040138a041700d5c6c2a62d1bf
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/8969?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8
  if-none-match: W/"209b05a8dd3aeffd"
  if-modified-since: Tue, 24 Nov 2026 10:04:51 GMT

hpack 8287d4449a6075998ee260c92d2861979aff2531689110543a4bf55d86217fd3d2d1d0cfcecdcccbca
nghttp2 8287cb049a6075998ee260c92d2861979aff2531689110543a4bf55d86217fcac9c8c7c6c5c4c3c2c1
maitred 8287cd049a6075998ee260c92d2861979aff2531689110543a4bf55d86217fcbcac9c8c7c6c5c4c3c2
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/384?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8387d5c75c8374026bc67f06947b34fca8d20cdddfdc2d5d5ed0cf1d10bbd75eefc5d5d4d3d2d1d0cfcecdcc
nghttp2 8387cb04896075998ee260c92d280f0d8374026bc07f00947b34fca8d20cdddfdc2d5d5ed0cf1d10bbd75eefbfcbcac9c8c7c6c5c4c3c2
maitred 8387cd04896075998ee260c92d280f0d8374026bbf1089f2b11164ab24fd4b57947b34fca8d20cdddfdc2d5d5ed0cf1d10bbd75eefbecbcac9c8c7c6c5c4c3c2
  :method: POST
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items
  content-length: 7024
  content-type: application/json
  x-csrf-token: 8KhWlN0Kv9S2Ok8M3VMA7kPS
  origin: https://app.example.org
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287d7449a6075998ee260c92d2861c034f7f9298b448882a1d25faaec310bd6d5d4d3d2d1d0cfcecd6990e4c7f2f38371a0360642123ed08bfcff6896df697e94134a693f75040138a041700fdc684a62d1bf
nghttp2 8287cc049a6075998ee260c92d2861c034f7f9298b448882a1d25faaec310bcbcac9c8c7c6c5c4c3c20f1a90e4c7f2f38371a0360642123ed08bfcff0f1996df697e94134a693f75040138a041700fdc684a62d1bf
maitred 8287cd049a6075998ee260c92d2861c034f7f9298b448882a1d25faaec310bcbcac9c8c7c6c5c4c3c20f1a90e4c7f2f38371a0360642123ed08bfcff0f1996df697e94134a693f75040138a041700fdc684a62d1bf
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/6048?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8
  if-none-match: W/"86a64050311c942e"
  if-modified-since: Tue, 24 Nov 2026 10:09:42 GMT

hpack 8287da449a6075998ee260c92d2861e75f7bfc94c5a2444150e92fd5761885d9d8d7d6d5d4d3d2d1d0
nghttp2 8287cc049a6075998ee260c92d2861e75f7bfc94c5a2444150e92fd5761885cbcac9c8c7c6c5c4c3c2
maitred 8287cd049a6075998ee260c92d2861e75f7bfc94c5a2444150e92fd5761885cbcac9c8c7c6c5c4c3c2
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/8798?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287db449a6075998ee260c92d2861b680eff9298b448882a1d25faaec310bdad9d8d7d6d5d4d3d2d1
nghttp2 8287cc049a6075998ee260c92d2861b680eff9298b448882a1d25faaec310bcbcac9c8c7c6c5c4c3c2
maitred 8287cd049a6075998ee260c92d2861b680eff9298b448882a1d25faaec310bcbcac9c8c7c6c5c4c3c2
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/5407?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8387dcce5c836996ffcd7f0593ee52037cd9eee2ce63fe5bc0590db394d86dcbccdcdbdad9d8d7d6d5d4d36990e4c7f2091d708fb8c81c7e528e46ff9f6896df697e94134a693f75040138a041702d5c65953168df
nghttp2 8387cc04896075998ee260c92d280f0d03343335c17e93ee52037cd9eee2ce63fe5bc0590db394d86dcbc0cccbcac9c8c7c6c5c4c30f1a90e4c7f2091d708fb8c81c7e528e46ff9f0f1996df697e94134a693f75040138a041702d5c65953168df
maitred 8387cd04896075998ee260c92d280f0d03343335bf1089f2b11164ab24fd4b5793ee52037cd9eee2ce63fe5bc0590db394d86dcbbecbcac9c8c7c6c5c4c3c20f1a90e4c7f2091d708fb8c81c7e528e46ff9f0f1996df697e94134a693f75040138a041702d5c65953168df
  :method: POST
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items
  content-length: 435
  content-type: application/json
  x-csrf-token: vec0TgLBGLioXuU2IiQWgFuJ
  origin: https://app.example.org
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8
  if-none-match: W/"0d76c963069fead5"
  if-modified-since: Tue, 24 Nov 2026 10:14:33 GMT

hpack 8287e0449a6075998ee260c92d2861c6df17f9298b448882a1d25faaec310bdfdedddcdbdad9d8d7d6
nghttp2 8287cd049a6075998ee260c92d2861c6df17f9298b448882a1d25faaec310bcccbcac9c8c7c6c5c4c3
maitred 8287cd049a6075998ee260c92d2861c6df17f9298b448882a1d25faaec310bcbcac9c8c7c6c5c4c3c2
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/6592?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287e1449a6075998ee260c92d2861b79907f9298b448882a1d25faaec310be0dfdedddcdbdad9d8d7
nghttp2 8287cd049a6075998ee260c92d2861b79907f9298b448882a1d25faaec310bcccbcac9c8c7c6c5c4c3
maitred 8287cd049a6075998ee260c92d2861b79907f9298b448882a1d25faaec310bcbcac9c8c7c6c5c4c3c2
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/5830?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287e2449a6075998ee260c92d28604fb6f7f9298b448882a1d25faaec310be1e0dfdedddcdbdad9d86990e4c7f23285b13cf4a069a74323cfff3f6896df697e94134a693f75040138a041702fdc134a62d1bf
nghttp2 8287cd049a6075998ee260c92d28604fb6f7f9298b448882a1d25faaec310bcccbcac9c8c7c6c5c4c30f1a90e4c7f23285b13cf4a069a74323cfff3f0f1996df697e94134a693f75040138a041702fdc134a62d1bf
maitred 8287cd049a6075998ee260c92d28604fb6f7f9298b448882a1d25faaec310bcbcac9c8c7c6c5c4c3c20f1a90e4c7f23285b13cf4a069a74323cfff3f0f1996df697e94134a693f75040138a041702fdc134a62d1bf
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/2958?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8
  if-none-match: W/"ae15288f04471d89"
  if-modified-since: Tue, 24 Nov 2026 10:19:24 GMT

hpack 8387e5d75c82089ad67f07938bd7b39d2ef1a70ad3c8c993c8fcf49fcddf7fd5e5e4e3e2e1e0dfdedddc
nghttp2 8387cd04896075998ee260c92d280f0d82089ac27e938bd7b39d2ef1a70ad3c8c993c8fcf49fcddf7fc1cdcccbcac9c8c7c6c5c4
maitred 8387cd04896075998ee260c92d280f0d82089abf1089f2b11164ab24fd4b57938bd7b39d2ef1a70ad3c8c993c8fcf49fcddf7fbecbcac9c8c7c6c5c4c3c2
  :method: POST
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items
  content-length: 124
  content-type: application/json
  x-csrf-token: _yzoot7VmF-hd3itWoYNoxBz
  origin: https://app.example.org
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287e7449a6075998ee260c92d2861b75907f9298b448882a1d25faaec310be6e5e4e3e2e1e0dfdedd
nghttp2 8287ce049a6075998ee260c92d2861b75907f9298b448882a1d25faaec310bcdcccbcac9c8c7c6c5c4
maitred 8287cd049a6075998ee260c92d2861b75907f9298b448882a1d25faaec310bcbcac9c8c7c6c5c4c3c2
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/5730?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287e8449a6075998ee260c92d2861c6d96bfc94c5a2444150e92fd5761885e7e6e5e4e3e2e1e0dfde6990e4c7f2eb6c965111e7a4640f4822ff3f6896df697e94134a693f75040138a041704d5c0b6a62d1bf
nghttp2 8287ce049a6075998ee260c92d2861c6d96bfc94c5a2444150e92fd5761885cdcccbcac9c8c7c6c5c40f1a90e4c7f2eb6c965111e7a4640f4822ff3f0f1996df697e94134a693f75040138a041704d5c0b6a62d1bf
maitred 8287cd049a6075998ee260c92d2861c6d96bfc94c5a2444150e92fd5761885cbcac9c8c7c6c5c4c3c20f1a90e4c7f2eb6c965111e7a4640f4822ff3f0f1996df697e94134a693f75040138a041704d5c0b6a62d1bf
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/6534?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8
  if-none-match: W/"753ef2c88d308d2e"
  if-modified-since: Tue, 24 Nov 2026 10:24:15 GMT

hpack 8287eb449a6075998ee260c92d2861e644eff9298b448882a1d25faaec310beae9e8e7e6e5e4e3e2e1
nghttp2 8287ce049a6075998ee260c92d2861e644eff9298b448882a1d25faaec310bcdcccbcac9c8c7c6c5c4
maitred 8287cd049a6075998ee260c92d2861e644eff9298b448882a1d25faaec310bcbcac9c8c7c6c5c4c3c2
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/8327?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8387ecde5c83680f37dd7f0593104fd6ed10ebc6dea9fbb7c734478c03c59b97dcecebeae9e8e7e6e5e4e3
nghttp2 8387ce04896075998ee260c92d280f0d83680f37c37e93104fd6ed10ebc6dea9fbb7c734478c03c59b97c2cecdcccbcac9c8c7c6c5
maitred 8387cd04896075998ee260c92d280f0d83680f37bf1089f2b11164ab24fd4b5793104fd6ed10ebc6dea9fbb7c734478c03c59b97becbcac9c8c7c6c5c4c3c2
  :method: POST
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items
  content-length: 4085
  content-type: application/json
  x-csrf-token: 21okBlAPH5Ohv5VK_ob0aGKW
  origin: https://app.example.org
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287ee449a6075998ee260c92d2861d135fe4a62d12220a87497eabb0c42ffedecebeae9e8e7e6e5e46990e4c7f2d4b23a2091903edb4db856bf9f6896df697e94134a693f75040138a041704fdc038a62d1bf
nghttp2 8287cf049a6075998ee260c92d2861d135fe4a62d12220a87497eabb0c42ffcecdcccbcac9c8c7c6c50f1a90e4c7f2d4b23a2091903edb4db856bf9f0f1996df697e94134a693f75040138a041704fdc038a62d1bf
maitred 8287cd049a6075998ee260c92d2861d135fe4a62d12220a87497eabb0c42ffcbcac9c8c7c6c5c4c3c20f1a90e4c7f2d4b23a2091903edb4db856bf9f0f1996df697e94134a693f75040138a041704fdc038a62d1bf
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/724?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8
  if-none-match: W/"4fd721c3095456e4"
  if-modified-since: Tue, 24 Nov 2026 10:29:06 GMT

hpack 8287f1449a6075998ee260c92d2861c109dff2531689110543a4bf55d86217f0efeeedecebeae9e8e7
nghttp2 8287cf049a6075998ee260c92d2861c109dff2531689110543a4bf55d86217cecdcccbcac9c8c7c6c5
maitred 8287cd049a6075998ee260c92d2861c109dff2531689110543a4bf55d86217cbcac9c8c7c6c5c4c3c2
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/6227?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287f2449a6075998ee260c92d2861b79c77fc94c5a2444150e92fd5761885f1f0efeeedecebeae9e8
nghttp2 8287cf049a6075998ee260c92d2861b79c77fc94c5a2444150e92fd5761885cecdcccbcac9c8c7c6c5
maitred 8287cd049a6075998ee260c92d2861b79c77fc94c5a2444150e92fd5761885cbcac9c8c7c6c5c4c3c2
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/5867?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8387f3e55c837db6bfe47f0595e5e716dde2e9d733babf3be8fdf0f691cddb8f717fe3f3f2f1f0efeeedecebea6990e4c7f216e578208c7215d2b723acff3f6896df697e94134a693f75040138a04171966e36ea98b46f
nghttp2 8387cf04896075998ee260c92d280f0d03393534c47e95e5e716dde2e9d733babf3be8fdf0f691cddb8f717fc3cfcecdcccbcac9c8c7c60f1a90e4c7f216e578208c7215d2b723acff3f0f1996df697e94134a693f75040138a04171966e36ea98b46f
maitred 8387cd04896075998ee260c92d280f0d03393534bf1089f2b11164ab24fd4b5795e5e716dde2e9d733babf3be8fdf0f691cddb8f717fbecbcac9c8c7c6c5c4c3c20f1a90e4c7f216e578208c7215d2b723acff3f0f1996df697e94134a693f75040138a04171966e36ea98b46f
  :method: POST
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items
  content-length: 954
  content-type: application/json
  x-csrf-token: WxGRT2jkK7OXvMZw8NagqVv2
  origin: https://app.example.org
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8
  if-none-match: W/"15f810bade7e5d73"
  if-modified-since: Tue, 24 Nov 2026 10:33:57 GMT

hpack 8287f7449a6075998ee260c92d2861a132eff9298b448882a1d25faaec310bf6f5f4f3f2f1f0efeeed
nghttp2 8287d0049a6075998ee260c92d2861a132eff9298b448882a1d25faaec310bcfcecdcccbcac9c8c7c6
maitred 8287cd049a6075998ee260c92d2861a132eff9298b448882a1d25faaec310bcbcac9c8c7c6c5c4c3c2
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/4237?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287f8449a6075998ee260c92d2861e138dff9298b448882a1d25faaec310bf7f6f5f4f3f2f1f0efee
nghttp2 8287d0049a6075998ee260c92d2861e138dff9298b448882a1d25faaec310bcfcecdcccbcac9c8c7c6
maitred 8287cd049a6075998ee260c92d2861e138dff9298b448882a1d25faaec310bcbcac9c8c7c6c5c4c3c2
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/8265?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287f9449a6075998ee260c92d2861d79c17f9298b448882a1d25faaec310bf8f7f6f5f4f3f2f1f0ef6990e4c7f2d3518246641146d3af8411ff3f6896df697e94134a693f75040138a0417197ae34f298b46f
nghttp2 8287d0049a6075998ee260c92d2861d79c17f9298b448882a1d25faaec310bcfcecdcccbcac9c8c7c60f1a90e4c7f2d3518246641146d3af8411ff3f0f1996df697e94134a693f75040138a0417197ae34f298b46f
maitred 8287cd049a6075998ee260c92d2861d79c17f9298b448882a1d25faaec310bcbcac9c8c7c6c5c4c3c20f1a90e4c7f2d3518246641146d3af8411ff3f0f1996df697e94134a693f75040138a0417197ae34f298b46f
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/7862?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8
  if-none-match: W/"44b0d3d2ea47910b"
  if-modified-since: Tue, 24 Nov 2026 10:38:48 GMT

hpack 8387418b1d75ae5f23a6ba0ab9ec9bef5c830b6fb5ee7f0893c71f6c55a43809ab687dc3c79833e407e55547ed40874148b1275ad1ffb8fe6f4f61e935b4ff3f7de0fe42d0bf9fa53f9c473cd4154bd3d87a4bfcfdf783f90b42fe7e94fe749d3142a5db07549fcfdf783f97dffe7f408b4148b1275ad1ad49e3350582ff01408d4148b1275ad1ad5d034ca7b29f88fe791aa90fe11fcf7ad5d07f66a281b0dae053fae46aa43f8429a77a8102e0fb5391aa71afb53cb8d7f6a435d74179163cc64b0db2eaecb8a7f59b1efd19fe94a0dd4aa62293a9ffb52f4f61e92b01684b81702e05370e51d8661b65d5d9735383f963e7408a4148b4a549275906497f8840e92ac7b0d31aaf408a4148b4a549275a93c85f8321ec47408a4148b4a549275a42a13f842d35a7d750929bd9abfa5242cb40d25fa523b3e94f684c9f519390ab5fc1f5217efb4005dffa2d5f7da002ef7f
nghttp2 8387d004896075998ee260c92d280f0d830b6fb5c57e93c71f6c55a43809ab687dc3c79833e407e55547c4d0cfcecdcccbcac9c8c7
maitred 8387cd04896075998ee260c92d280f0d830b6fb5bf1089f2b11164ab24fd4b5793c71f6c55a43809ab687dc3c79833e407e55547becbcac9c8c7c6c5c4c3c2
  :method: POST
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items
  content-length: 1594
  content-type: application/json
  x-csrf-token: HbqGpt1EcOR1zAVY0LI0Xnnb
  origin: https://app.example.org
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287ca449a6075998ee260c92d2861e75e7ffc94c5a2444150e92fd5761885c8c7c6c5c4c3c2c1c0bf
nghttp2 8287d1049a6075998ee260c92d2861e75e7ffc94c5a2444150e92fd5761885d0cfcecdcccbcac9c8c7
maitred 8287cd049a6075998ee260c92d2861e75e7ffc94c5a2444150e92fd5761885cbcac9c8c7c6c5c4c3c2
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/8789?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8

hpack 8287cb449a6075998ee260c92d28604fb4cff9298b448882a1d25faaec310bc9c8c7c6c5c4c3c2c1c06990e4c7f2c84246dd09632bf20247cbfcff6896df697e94134a693f75040138a04171a66e32fa98b46f
nghttp2 8287d1049a6075998ee260c92d28604fb4cff9298b448882a1d25faaec310bd0cfcecdcccbcac9c8c70f1a90e4c7f2c84246dd09632bf20247cbfcff0f1996df697e94134a693f75040138a04171a66e32fa98b46f
maitred 8287cd049a6075998ee260c92d28604fb4cff9298b448882a1d25faaec310bcbcac9c8c7c6c5c4c3c20f1a90e4c7f2c84246dd09632bf20247cbfcff0f1996df697e94134a693f75040138a04171a66e32fa98b46f
  :method: GET
  :scheme: https
  :authority: app.example.org
  :path: /api/v2/items/2943?fields=name,price
  sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"
  sec-ch-ua-mobile: ?0
  sec-ch-ua-platform: "Windows"
  user-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
  accept: */*
  sec-fetch-site: same-origin
  sec-fetch-mode: cors
  sec-fetch-dest: empty
  accept-encoding: gzip, deflate, br, zstd
  accept-language: de-DE,de;q=0.9,en;q=0.8
  if-none-match: W/"311c571ebe9d0d9e"
  if-modified-since: Tue, 24 Nov 2026 10:43:39 GMT
