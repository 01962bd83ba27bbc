# Firefox: some pages with their parts, cookies in crumbs.

hpack 8287418cf1e3c2e5f23a6ba0ab90f4ff4489607624c4a0a861f1317ab5d07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bed4b3bdc089e5c1fda988a4ea76040080010054c26b0b29fcb0113cb83f53b0497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68fa1d75d0620d263d4c79a68fbed00177febe58f9fbed00177b51932d4b62bbf45abefb4005ddfa90bf7da002ecff50929bd9abfa5242cb40d25fa523b3e94f684c9f4092b6b9ac1c8558d520a4b6c2ad617b5a54251f810f408a4148b4a549275a42a13f8690e4b692d49f408a4148b4a549275a93c85f86a87dcd30d25f408a4148b4a549275906497f83a8f517408a4148b4a549275ad416cf82ff034086aec31ec327d785b6007d286f4082497f864d833505b11f
nghttp2 8287418cf1e3c2e5f23a6ba0ab90f4ff0489607624c4a0a861f1317ab5d07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bed4b3bdc089e5c1fda988a4ea76040080010054c26b0b29fcb0113cb83f53b0497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68fa1d75d0620d263d4c79a68fbed00177febe58f9fbed00177b51932d4b62bbf45abefb4005ddfa90bf7da002ecff50929bd9abfa5242cb40d25fa523b3e94f684c9f4092b6b9ac1c8558d520a4b6c2ad617b5a54251f0131408a4148b4a549275a42a13f8690e4b692d49f408a4148b4a549275a93c85f86a87dcd30d25f408a4148b4a549275906497f83a8f517408a4148b4a549275ad416cf023f314086aec31ec327d785b6007d286f40027465864d833505b11f
maitred 8287418cf1e3c2e5f23a6ba0ab90f4ff4489607624c4a0a861f1317ab5d07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bed4b3bdc089e5c1fda988a4ea76040080010054c26b0b29fcb0113cb83f53b0497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68fa1d75d0620d263d4c79a68fbed00177febe58f9fbed00177b51932d4b62bbf45abefb4005ddfa90bf7da002ecff50929bd9abfa5242cb40d25fa523b3e94f684c9f4092b6b9ac1c8558d520a4b6c2ad617b5a54251f0131408a4148b4a549275a42a13f8690e4b692d49f408a4148b4a549275a93c85f86a87dcd30d25f408a4148b4a549275906497f83a8f517408a4148b4a549275ad416cf023f314086aec31ec327d785b6007d286f40027465864d833505b11f
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /articles/92/
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  upgrade-insecure-requests: 1
  sec-fetch-dest: document
  sec-fetch-mode: navigate
  sec-fetch-site: none
  sec-fetch-user: ?1
  priority: u=0, i
  te: trailers

hpack 8287ca449261091a4c463a218ee5aa43d8bbe40c8bf447c95383f963e7c8c760a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf60a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e160884ce5a4b0483b3aff73929d29ad171863c78f0b97c8e9ae82ae43d2c77f0a84427d505f7f0a85a8eb10f6237f0a8840e92ac7b0d31aaf7f0985b606fe9437c8
nghttp2 8287c9049261091a4c463a218ee5aa43d8bbe40c8bf447c853032a2f2ac7c660a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf60a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3aff73929d29ad171863c78f0b97c8e9ae82ae43d2c77f0884427d505f7f0885a8eb10f6237f088840e92ac7b0d31aaf7f0785b606fe9437c6
maitred 8287ca049261091a4c463a218ee5aa43d8bbe40c8bf447c80f04032a2f2a51932d4b62bbf45abefb4005ddfa90bf7da002ecffc61f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3aff73929d29ad171863c78f0b97c8e9ae82ae43d2c70f3684427d505f0f3585a8eb10f623408a4148b4a549275906497f8840e92ac7b0d31aaf0f3385b606fe9437c1
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/js/vendor.9c1d.js
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=5, i
  te: trailers

hpack 8287d4449061091a4c463a2181d75aeeba31afd11fd353b5352398ac0fb9a5fa352398ac782c75fd1a91cc562baa6fa352398ac23bcdfefcd347d1a91cc563e7efb4005defaf963e7efb4005dbd2d1c7c6c5c4c3c2c17f0183b606bfcb
nghttp2 8287d1049061091a4c463a2181d75aeeba31afd11fd053b5352398ac0fb9a5fa352398ac782c75fd1a91cc562baa6fa352398ac23bcdfefcd347d1a91cc563e7efb4005defaf963e7efb4005dbcfcec5c41f11884ce5a4b0483b3affc3c2c1c07f0003753d34c8
maitred 8287cd049061091a4c463a2181d75aeeba31afd11fcb0f04b5352398ac0fb9a5fa352398ac782c75fd1a91cc562baa6fa352398ac23bcdfefcd347d1a91cc563e7efb4005defaf963e7efb4005dbc0c81f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affbf7f0784427d505f7f0785a8eb10f623c00f3503753d34c3
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/js/app.77aa.js
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=4
  te: trailers

hpack 8287d7448e61091a4c460d4ccc50798eba3bcdd6538e497ca582211f5f2c7cfdf6800b87d5d4cac9c8c7c6c5c47f0183b6017fce
nghttp2 8287d3048e61091a4c460d4ccc50798eba3bcdd2538e497ca582211f5f2c7cfdf6800b87d1d0c7c61f11884ce5a4b0483b3affc5c4c3c27f0003753d32ca
maitred 8287cf048e61091a4c460d4ccc50798eba3bcdcd0f048e497ca582211f5f2c7cfdf6800b87c2ca1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affc1bfbec00f3503753d32c3
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/img/logo.svg
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: text/css,*/*;q=0.1
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=2
  te: trailers

hpack 8287da44896251f7310f52e621ffd9c3d7d6cccbcac97f0984352398bfc8c7c0d0
nghttp2 8287d504896251f7310f52e621ffd4c1d2d1c8c71f11884ce5a4b0483b3affc67f0684352398bfc5c4bfcb
maitred 8287cf04896251f7310f52e621ffcd0f04b5352398ac0fb9a5fa352398ac782c75fd1a91cc562baa6fa352398ac23bcdfefcd347d1a91cc563e7efb4005defaf963e7efb4005dbc2ca1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affc17f0084352398bfbfc17f0603753d32c5
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /favicon.ico
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: image
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=2
  te: trailers

hpack 8287dc449261091a4c46253d494306a925b17f0796517fdbcfd9d8cecdcccbcac9c8c1d1
nghttp2 8287d6049261091a4c46253d494306a925b17f0796517fd5cad3d2c9c81f11884ce5a4b0483b3affc7c6c5c4bfcb
maitred 8287d1049261091a4c46253d494306a925b17f0796517fcf0f04032a2f2ac4cc1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affc3c1c0c2bec5
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/fonts/inter.woff2
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=2
  te: trailers

hpack 8287dd448e6292c861b15ce749d0c0571f734bdcd0dad9cfcecdccc0cac9c2d2
nghttp2 8287d6048e6292c861b15ce749d0c0571f734bd5cad3d2c9c81f11884ce5a4b0483b3affc7bec5c4bfcb
maitred 8287d1048e6292c861b15ce749d0c0571f734bcf53032a2f2ac5cd1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affc4c0c1c3bfc6
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /media/photos/1.avif
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: image
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=2
  te: trailers

hpack 8287de448e6292c861b15ce749d0c0971f734bddc4dbdad0cfcecdcccbcac6d3
nghttp2 8287d6048e6292c861b15ce749d0c0971f734bd5c0d3d2c9c81f11884ce5a4b0483b3affc7c6c5c4c1cb
maitred 8287d2048e6292c861b15ce749d0c0971f734bd00f048e497ca582211f5f2c7cfdf6800b87c5cd1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affc4c2c1c37f0003753d34c7
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /media/photos/2.avif
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: text/css,*/*;q=0.1
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=4
  te: trailers

hpack 8287df449161091a4c460884308324abb32886b9108fdec5dcdbd1d0cfce7f0384412c3569cdccc8d5
nghttp2 8287d6049161091a4c460884308324abb32886b9108fd5c0d3d2c9c81f11884ce5a4b0483b3affc77e84412c3569c6c5c2cc
maitred 8287d3049161091a4c460884308324abb32886b9108fd1538e497ca582211f5f2c7cfdf6800b87c7cf1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affc67f0384412c3569c4c6c0c9
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/css/site.3f2a.css
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: text/css,*/*;q=0.1
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: script
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=4
  te: trailers

hpack 8287e1449361051d849ffced04e94d6a8b08be2b1cc581ffe0dfdeddd3d2d1dcdbdacdd8d7d6
nghttp2 8287d7049361051d849ffced04e94d6a8b08be2b1cc581ffd6d5d4d3cac91f11884ce5a4b0483b3affd2d1d0c5cecdcc
maitred 8287d5049361051d849ffced04e94d6a8b08be2b1cc581ffd3d2c8d01f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affcfce7f0586a87dcd30d25fc77f0d023f31cccb
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /search?q=http%2F2&page=9
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  upgrade-insecure-requests: 1
  sec-fetch-dest: document
  sec-fetch-mode: navigate
  sec-fetch-site: same-origin
  sec-fetch-user: ?1
  priority: u=0, i
  te: trailers

hpack 8287e2cbe0d4deddd3d2d1d0cfcecdccd6
nghttp2 8287d7049061091a4c463a2181d75aeeba31afd11fd6cbd4d3cac91f11884ce5a4b0483b3affc8c7c6c5c4cc
maitred 8287d7049061091a4c463a2181d75aeeba31afd11fd5c351932d4b62bbf45abefb4005ddfa90bf7da002ecffd31f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affcac8c7c97f0485b606fe9437cd
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/js/app.77aa.js
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=5, i
  te: trailers

hpack 8287e2c8e0d4deddd3d2d1d0bfcecdccd6
nghttp2 8287d7048e61091a4c460d4ccc50798eba3bcdd6cbd4d3cac91f11884ce5a4b0483b3affc8bec6c5c4cc
maitred 8287d9048e61091a4c460d4ccc50798eba3bcdd7c5bfd41f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affcbc2c8cabecd
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/img/logo.svg
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: script
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=5, i
  te: trailers

hpack 8287e2c5e0d4deddd3d2d1d0cfcecdc9d6
nghttp2 8287d704896251f7310f52e621ffd6cbd4d3cac91f11884ce5a4b0483b3affc8c7c6c5c2cc
maitred 8287d904896251f7310f52e621ffd7c5bfd41f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affcbc9c8cac4cd
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /favicon.ico
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=4
  te: trailers

hpack 8287e2c3e0cadeddd3d2d1d0cfcecdccd6
nghttp2 8287d7049261091a4c46253d494306a925b17f0796517fd6c3d4d3cac91f11884ce5a4b0483b3affc8c7c6c5c4cc
maitred 8287d9049261091a4c46253d494306a925b17f0796517fd753b5352398ac0fb9a5fa352398ac782c75fd1a91cc562baa6fa352398ac23bcdfefcd347d1a91cc563e7efb4005defaf963e7efb4005dbc0d51f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affcccac9cbbfce
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/fonts/inter.woff2
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=5, i
  te: trailers

hpack 8287e2c2e0c7deddd3d2d1d0cfcecdc9d6
nghttp2 8287d7048e6292c861b15ce749d0c0571f734bd6c1d4d3cac91f11884ce5a4b0483b3affc8c7c6c5c2cc
maitred 8287da048e6292c861b15ce749d0c0571f734bd8c4c0d51f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affcccac9cbc5ce
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /media/photos/1.avif
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: text/css,*/*;q=0.1
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=4
  te: trailers

hpack 8287e2c1e0cadeddd3d2d1d0bfcecdc9d6
nghttp2 8287d7048e6292c861b15ce749d0c0971f734bd6c3d4d3cac91f11884ce5a4b0483b3affc8bec6c5c2cc
maitred 8287da048e6292c861b15ce749d0c0971f734bd8bec0d51f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affccc3c9cbc5ce
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /media/photos/2.avif
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: script
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=4
  te: trailers

hpack 8287e2c0e0d4deddd3d2d1d0c4cecdc6d6
nghttp2 8287d7049161091a4c460884308324abb32886b9108fd6cbd4d3cac91f11884ce5a4b0483b3affc8bfc6c5c0cc
maitred 8287da049161091a4c460884308324abb32886b9108fd8c6c0d51f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affccc8c9cb7f0003753d32cf
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/css/site.3f2a.css
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: image
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=2
  te: trailers

hpack 8287e2d5e0c7deddd3d2d1d0bfcecdc9d6
nghttp2 8287d7049261091a4c463a218ee5aa43d8bbe40c8bf447d6c1d4d3cac91f11884ce5a4b0483b3affc8bec6c5c2cc
maitred 8287db049261091a4c463a218ee5aa43d8bbe40c8bf447d9c5c1d61f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affcdc4caccc6cf
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/js/vendor.9c1d.js
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: text/css,*/*;q=0.1
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: script
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=4
  te: trailers

hpack 8287e24487607624c4a0a863e1e0dfded4d3d2dddcdbced9d8d7
nghttp2 8287d70487607624c4a0a863d6d5d4d3cac91f11884ce5a4b0483b3affd2d1d0c5cecdcc
maitred 8287db0487607624c4a0a863d9d8c1d61f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd5d47f0486a87dcd30d25fcd7f04023f31d2d1
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /articles/
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  upgrade-insecure-requests: 1
  sec-fetch-dest: document
  sec-fetch-mode: navigate
  sec-fetch-site: same-origin
  sec-fetch-user: ?1
  priority: u=0, i
  te: trailers

hpack 8287e3c9e1d5dfded4d3d2d1c0cfcecad7
nghttp2 8287d7048e61091a4c460d4ccc50798eba3bcdd6cbd4d3cac91f11884ce5a4b0483b3affc8bec6c5c2cc
maitred 8287dd048e61091a4c460d4ccc50798eba3bcddbc951932d4b62bbf45abefb4005ddfa90bf7da002ecffd91f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd0c7cdcfc9d2
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/img/logo.svg
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: script
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=4
  te: trailers

hpack 8287e3c6e1d5dfded4d3d2d1c0cfcec7d7
nghttp2 8287d704896251f7310f52e621ffd6cbd4d3cac91f11884ce5a4b0483b3affc8bec6c5c0cc
maitred 8287de04896251f7310f52e621ffdccabed91f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd0c7cdcf7f0203753d32d3
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /favicon.ico
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: script
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=2
  te: trailers

hpack 8287e3c4e1c8dfded4d3d2d1c5cfcec7d7
nghttp2 8287d7049261091a4c46253d494306a925b17f0796517fd6c1d4d3cac91f11884ce5a4b0483b3affc8bfc6c5c0cc
maitred 8287df049261091a4c46253d494306a925b17f0796517fddc9bfda1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd1cdced0bed3
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/fonts/inter.woff2
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: text/css,*/*;q=0.1
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: image
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=2
  te: trailers

hpack 8287e3c3e1cbdfded4d3d2d1c5cfcecad7
nghttp2 8287d7048e6292c861b15ce749d0c0571f734bd6c3d4d3cac91f11884ce5a4b0483b3affc8bfc6c5c2cc
maitred 8287df048e6292c861b15ce749d0c0571f734bddc3bfda1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd1cdced0cad3
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /media/photos/1.avif
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: image
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=4
  te: trailers

hpack 8287e3c2e1c8dfded4d3d2d1c0cfcecad7
nghttp2 8287d7048e6292c861b15ce749d0c0971f734bd6c1d4d3cac91f11884ce5a4b0483b3affc8bec6c5c2cc
maitred 8287df048e6292c861b15ce749d0c0971f734bddc9bfda1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd1c8ced0cad3
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /media/photos/2.avif
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: text/css,*/*;q=0.1
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: script
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=4
  te: trailers

hpack 8287e3c1e1d5dfded4d3d2d1d0cfcecad7
nghttp2 8287d7049161091a4c460884308324abb32886b9108fd6cbd4d3cac91f11884ce5a4b0483b3affc8c7c6c5c2cc
maitred 8287df049161091a4c460884308324abb32886b9108fddcbbfda1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd1cfced0cad3
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/css/site.3f2a.css
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=4
  te: trailers

hpack 8287e3d6e1d5dfded4d3d2d1d0cfcecdd7
nghttp2 8287d7049261091a4c463a218ee5aa43d8bbe40c8bf447d6cbd4d3cac91f11884ce5a4b0483b3affc8c7c6c5c4cc
maitred 8287df049261091a4c463a218ee5aa43d8bbe40c8bf447ddcbbfda1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd1cfced0c4d3
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/js/vendor.9c1d.js
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=5, i
  te: trailers

hpack 8287e3cce1d5dfded4d3d2d1c5cfcec7d7
nghttp2 8287d7049061091a4c463a2181d75aeeba31afd11fd6cbd4d3cac91f11884ce5a4b0483b3affc8bfc6c5c0cc
maitred 8287df049061091a4c463a2181d75aeeba31afd11fddcbbfda1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd1cdced0bed3
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/js/app.77aa.js
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: image
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=2
  te: trailers

hpack 8287e3bee1e0dfded4d3d2dddcdbced9d8d7
nghttp2 8287d70487607624c4a0a863d6d5d4d3cac91f11884ce5a4b0483b3affd2d1d0c5cecdcc
maitred 8287df0487607624c4a0a863dddcbfda1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd9d87f0286a87dcd30d25fd17f02023f31d6d5
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /articles/
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  upgrade-insecure-requests: 1
  sec-fetch-dest: document
  sec-fetch-mode: navigate
  sec-fetch-site: same-origin
  sec-fetch-user: ?1
  priority: u=0, i
  te: trailers

hpack 8287e3c6e1d5dfded4d3d2d1d0cfcecad7
nghttp2 8287d704896251f7310f52e621ffd6cbd4d3cac91f11884ce5a4b0483b3affc8c7c6c5c2cc
maitred 8287e104896251f7310f52e621ffdfcd51932d4b62bbf45abefb4005ddfa90bf7da002ecffdd1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd4d2d1d3cdd6
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /favicon.ico
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=4
  te: trailers

hpack 8287e3c4e1d5dfded4d3d2d1d0cfcec7d7
nghttp2 8287d7049261091a4c46253d494306a925b17f0796517fd6cbd4d3cac91f11884ce5a4b0483b3affc8c7c6c5c0cc
maitred 8287e2049261091a4c46253d494306a925b17f0796517fe0cebedd1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd4d2d1d37f0203753d32d7
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/fonts/inter.woff2
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=2
  te: trailers

hpack 8287e3c3e1cbdfded4d3d2d1d0cfcecdd7
nghttp2 8287d7048e6292c861b15ce749d0c0571f734bd6c3d4d3cac91f11884ce5a4b0483b3affc8c7c6c5c4cc
maitred 8287e3048e6292c861b15ce749d0c0571f734be1c7bfde1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd5d3d2d4c8d7
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /media/photos/1.avif
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=5, i
  te: trailers

hpack 8287e3c2e1d5dfded4d3d2d1d0cfcecdd7
nghttp2 8287d7048e6292c861b15ce749d0c0971f734bd6cbd4d3cac91f11884ce5a4b0483b3affc8c7c6c5c4cc
maitred 8287e3048e6292c861b15ce749d0c0971f734be1cfbfde1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd5d3d2d4c8d7
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /media/photos/2.avif
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: */*
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=5, i
  te: trailers

hpack 8287e3c1e1cbdfded4d3d2d1d0cfcecdd7
nghttp2 8287d7049161091a4c460884308324abb32886b9108fd6c3d4d3cac91f11884ce5a4b0483b3affc8c7c6c5c4cc
maitred 8287e3049161091a4c460884308324abb32886b9108fe1c7bfde1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd5d3d2d4c8d7
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/css/site.3f2a.css
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: style
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=5, i
  te: trailers

hpack 8287e3d6e1c8dfded4d3d2d1c5cfcecdd7
nghttp2 8287d7049261091a4c463a218ee5aa43d8bbe40c8bf447d6c1d4d3cac91f11884ce5a4b0483b3affc8bfc6c5c4cc
maitred 8287e3049261091a4c463a218ee5aa43d8bbe40c8bf447e1cdbfde1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd5d1d2d4c8d7
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/js/vendor.9c1d.js
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: text/css,*/*;q=0.1
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: image
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=5, i
  te: trailers

hpack 8287e3cce1c8dfded4d3d2d1c5cfcec7d7
nghttp2 8287d7049061091a4c463a2181d75aeeba31afd11fd6c1d4d3cac91f11884ce5a4b0483b3affc8bfc6c5c0cc
maitred 8287e3049061091a4c463a2181d75aeeba31afd11fe1cdbfde1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd5d1d2d4bed7
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/js/app.77aa.js
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: text/css,*/*;q=0.1
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: image
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=2
  te: trailers

hpack 8287e3c9e1cbdfded4d3d2d1c5cfcec7d7
nghttp2 8287d7048e61091a4c460d4ccc50798eba3bcdd6c3d4d3cac91f11884ce5a4b0483b3affc8bfc6c5c0cc
maitred 8287e3048e61091a4c460d4ccc50798eba3bcde1c7bfde1f11a14150831ea34906197a44df665ace6f7c326b271c28d79b149d266f1c9e73dbdfcf1f11a1222c9527ea5aa0f3dedcfe64c6dcdd24c59b5a30f126bc9c3d9b3b4cf66e2e92e11f11884ce5a4b0483b3affd5d1d2d4bed7
  :method: GET
  :scheme: https
  :authority: www.example.com
  :path: /static/img/logo.svg
  user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
  accept: image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5
  accept-language: en-GB,en;q=0.7,de;q=0.3
  accept-encoding: gzip, deflate, br, zstd
  cookie: sessionid=Ffj_5q34LizUIPcVFsPKGdjg5HdxLuvx
  cookie: csrftoken=xvuLxdH5gjdGKPsFVcPIUziL43q5_jfF
  cookie: theme=dark
  referer: https://www.example.com/
  sec-fetch-dest: image
  sec-fetch-mode: no-cors
  sec-fetch-site: same-origin
  priority: u=2
  te: trailers
