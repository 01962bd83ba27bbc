# Calls with many own names, empty values, base64 and bytes outside ASCII.

hpack 8387418c9acac8b97c8e9ae82ae43d3f448d61139eb5fb857bc3b12c6732134082497f864d833505b11f5f8b1d75d0620d263d4c4d656440899acac8b24d494f6a7f8465971ba77aa39acac8b13fdffb602bb805c0a4d6564588c32eae05c0a7f541aab7cfda849d29ac5fdf408e9acac8b0c842d6958b510f21aa9b913485a9264fafa5242cb40d25fa526f66af4086f2b169ad3ebf804089f2b466a8767a5a3355a4fcff7eecfdeec648fdf4fde154e88f95082933c7e3a5526faf103f7d55f9a8d2bbc7fdf54085f2b543a4bfa7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d407f
nghttp2 8387418c9acac8b97c8e9ae82ae43d3f048d61139eb5fb857bc3b12c67321340027465864d833505b11f5f8b1d75d0620d263d4c4d656440899acac8b24d494f6a7f8465971ba77aa39acac8b13fdffb602bb805c0a4d6564588c32eae05c0a7f541aab7cfda849d29ac5fdf408e9acac8b0c842d6958b510f21aa9b913485a9264fafa5242cb40d25fa526f66af4086f2b169ad3ebf004089f2b466a8767a5a3355a4fcff7eecfdeec648fdf4fde154e88f95082933c7e3a5526faf103f7d55f9a8d2bbc7fdf54085f2b543a4bf1c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612030
maitred 8387418c9acac8b97c8e9ae82ae43d3f448d61139eb5fb857bc3b12c67321340027465864d833505b11f5f8b1d75d0620d263d4c4d656440899acac8b24d494f6a7f8465971ba77aa39acac8b13fdffb602bb805c0a4d6564588c32eae05c0a7f541aab7cfda849d29ac5fdf408e9acac8b0c842d6958b510f21aa9b913485a9264fafa5242cb40d25fa526f66af4086f2b169ad3ebf004089f2b466a8767a5a3355a4fcff7eecfdeec648fdf4fde154e88f95082933c7e3a5526faf103f7d55f9a8d2bbc7fdf54085f2b543a4bf1c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612030
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/List
  te: trailers
  content-type: application/grpc
  grpc-timeout: 3365m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: X+zrZv/IbzjZUnhsbWlsecLbwjndTpG0ZynXOif7V+k
  x-name: Jürgen Müller — Ωmega 0

hpack 8387c7448d61139eb5fb857bc3b12c622a7fc6c57f0584085a6e9fc4c3c27f02a11b43f4461e031ab14836aeea602763880a9af576367f21cbe2eb7b998cb8f9011f7f02a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d40ff
nghttp2 8387c6048d61139eb5fb857bc3b12c622a7fc5c47f0484085a6e9fc3c2c17f01a11b43f4461e031ab14836aeea602763880a9af576367f21cbe2eb7b998cb8f9011f7f011c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612031
maitred 8387c7048d61139eb5fb857bc3b12c622a7fc5c40f3484085a6e9fc2c1c00f30a11b43f4461e031ab14836aeea602763880a9af576367f21cbe2eb7b998cb8f9011f0f2f1c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612031
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Get
  te: trailers
  content-type: application/grpc
  grpc-timeout: 1145m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s
  x-name: Jürgen Müller — Ωmega 1

hpack 8387cb448d61139eb5fb857bc3b12c6bb53fcac97f028469b65fa7c8c7c67f02a20e3d25d46fd2e1b5d9b5868f266d3243e3112ebe6179dbfef60ba574c76f8dfdbdf07f02a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d417f
nghttp2 8387c9048d61139eb5fb857bc3b12c6bb53fc8c77f018469b65fa7c6c5c47f01a20e3d25d46fd2e1b5d9b5868f266d3243e3112ebe6179dbfef60ba574c76f8dfdbdf07f011c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612032
maitred 8387c7048d61139eb5fb857bc3b12c6bb53fc5c40f348469b65fa7c2c1c00f30a20e3d25d46fd2e1b5d9b5868f266d3243e3112ebe6179dbfef60ba574c76f8dfdbdf00f2f1c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612032
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Put
  te: trailers
  content-type: application/grpc
  grpc-timeout: 4539m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: 1HNeOiZeFu7gP1lxi5tdAwGcB9i2xR+Q2jpmbuwTqzU
  x-name: Jürgen Müller — Ωmega 2

hpack 8387cfc5cdcc7f018469e7454fcbcac97f01a3df3490cfcb37fb13499bdcdf9759431d2cda367274bdca52c32fec29ff7b7d520a9e6b7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d467f
nghttp2 8387cc048d61139eb5fb857bc3b12c622a7fcbca7f018469e7454fc9c8c77f01a3df3490cfcb37fb13499bdcdf9759431d2cda367274bdca52c32fec29ff7b7d520a9e6b7f011c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612033
maitred 8387c7048d61139eb5fb857bc3b12c622a7fc5c40f348469e7454fc2c1c00f30a3df3490cfcb37fb13499bdcdf9759431d2cda367274bdca52c32fec29ff7b7d520a9e6b0f2f1c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612033
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Get
  te: trailers
  content-type: application/grpc
  grpc-timeout: 4872m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: TgdAhWK+24tgzgXB3s/jrRa3IjCWfeAfZAt+Rym0n84
  x-name: Jürgen Müller — Ωmega 3

hpack 8387d2c4d0cf7f018365b669cecdcc7f01a3ddeb2b323fbe4c6f73246d4faf762d924366fdb924d6fe83faf060f0f2c66f63eed1ff7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d46bf
nghttp2 8387cf048d61139eb5fb857bc3b12c6bb53fcecd7f018365b669cccbca7f01a3ddeb2b323fbe4c6f73246d4faf762d924366fdb924d6fe83faf060f0f2c66f63eed1ff7f011c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612034
maitred 8387c7048d61139eb5fb857bc3b12c6bb53fc5c40f348365b669c2c1c00f30a3ddeb2b323fbe4c6f73246d4faf762d924366fdb924d6fe83faf060f0f2c66f63eed1ff0f2f1c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612034
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Put
  te: trailers
  content-type: application/grpc
  grpc-timeout: 353m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: SyJ3d9TdH8Ycb4hPSGQdArTRIdP9Moywi1Ux/Kzav4o
  x-name: Jürgen Müller — Ωmega 4

hpack 8387d5d4d3d27f018375e0d3d1d0cf7f01a377d0374a5d2ed17adec0c5870b7c11a39fe9e5c9d32bb9ecefafba0baf8f2dddda6c1f7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d46ff
nghttp2 8387d2048d61139eb5fb857bc3b12c673213d1d07f018375e0d3cfcecd7f01a377d0374a5d2ed17adec0c5870b7c11a39fe9e5c9d32bb9ecefafba0baf8f2dddda6c1f7f011c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612035
maitred 8387c7c6c5c40f348375e0d3c2c1c00f30a377d0374a5d2ed17adec0c5870b7c11a39fe9e5c9d32bb9ecefafba0baf8f2dddda6c1f0f2f1c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612035
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/List
  te: trailers
  content-type: application/grpc
  grpc-timeout: 781m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: 7y0SfeN7lCuq0GFF5UsMYZofIjJ7LrvPvsePVWSv450
  x-name: Jürgen Müller — Ωmega 5

hpack 8387d8cad6d57f018469d759a7d4d3d27f01a36d88e1c1f925bd23974e8f09e1840c7e46c82f61b39eed58eb958d76dd6fbdedb41f477f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d473f
nghttp2 8387d5048d61139eb5fb857bc3b12c6bb53fd4d37f018469d759a7d2d1d07f01a36d88e1c1f925bd23974e8f09e1840c7e46c82f61b39eed58eb958d76dd6fbdedb41f477f011c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612036
maitred 8387c7448d61139eb5fb857bc3b12c6bb53fc6c50f358469d759a7c3c2c10f31a36d88e1c1f925bd23974e8f09e1840c7e46c82f61b39eed58eb958d76dd6fbdedb41f470f301c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612036
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Put
  te: trailers
  content-type: application/grpc
  grpc-timeout: 4773m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: 5/bAEXdujbfNMwtUF0/Xb30CFrYSOHpf/PuB5vCRloM
  x-name: Jürgen Müller — Ωmega 6

hpack 8387dbd1d9d87f018465e6c54fd7d6d57f01a42eccb5d3fef620c76f17fb753861fccb461ff73d9911c7b62caf8b28e31eed9347970e0f7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d477f
nghttp2 8387d8048d61139eb5fb857bc3b12c622a7fd7d67f018465e6c54fd5d4d37f01a42eccb5d3fef620c76f17fb753861fccb461ff73d9911c7b62caf8b28e31eed9347970e0f7f011c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612037
maitred 8387c8048d61139eb5fb857bc3b12c622a7fc6c50f358465e6c54fc3c2c10f31a42eccb5d3fef620c76f17fb753861fccb461ff73d9911c7b62caf8b28e31eed9347970e0f0f301c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612037
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Get
  te: trailers
  content-type: application/grpc
  grpc-timeout: 3852m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: eQJpm+Qsio5G+7tFAXJlF+hrIsVqGJ92JabaSQgbJFE
  x-name: Jürgen Müller — Ωmega 7

hpack 8387dedddcdb7f01846596814fdad9d87f01a4cf8b2ded0867764fc26ea34ffb7746cb334309f4bfdbd67fdb07c85b1df11beebbfb9b477f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d47bf
nghttp2 8387db048d61139eb5fb857bc3b12c673213dad97f01846596814fd8d7d67f01a4cf8b2ded0867764fc26ea34ffb7746cb334309f4bfdbd67fdb07c85b1df11beebbfb9b477f011c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612038
maitred 8387c8c7c6c50f35846596814fc3c2c10f31a4cf8b2ded0867764fc26ea34ffb7746cb334309f4bfdbd67fdb07c85b1df11beebbfb9b470f301c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612038
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/List
  te: trailers
  content-type: application/grpc
  grpc-timeout: 3340m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: LGJCMs3SIXcSlN+7MQrKAAoN9qyLZraW2Q7wb977ZKM
  x-name: Jürgen Müller — Ωmega 8

hpack 8387e1e0dfde7f01840b6cb74fdddcdb7f01a3c5c662e57db79dd97d8c7ab867c9825aabe52e31f9f4e38e77a1df1ad9f1e30ba98c9f7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d47ff
nghttp2 8387de048d61139eb5fb857bc3b12c673213dddc7f01840b6cb74fdbdad97f01a3c5c662e57db79dd97d8c7ab867c9825aabe52e31f9f4e38e77a1df1ad9f1e30ba98c9f7f011c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612039
maitred 8387c8c7c6c50f35840b6cb74fc3c2c10f31a3c5c662e57db79dd97d8c7ab867c9825aabe52e31f9f4e38e77a1df1ad9f1e30ba98c9f0f301c4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d6567612039
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/List
  te: trailers
  content-type: application/grpc
  grpc-timeout: 1535m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: GVgeJ9587QD/HOULIEfnpWfHaxy666vl7wP3wwF7tbc
  x-name: Jürgen Müller — Ωmega 9

hpack 8387e4d6e2e17f018469e1394fe0dfde7f01a4ddd77930effdbd7734dadc85cd9ab871278e57af4dcf26b6accbaf1d193dd851f7c7270f7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d4083
nghttp2 8387e1048d61139eb5fb857bc3b12c6bb53fe0df7f018469e1394fdedddc7f01a4ddd77930effdbd7734dadc85cd9ab871278e57af4dcf26b6accbaf1d193dd851f7c7270f7f011d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203130
maitred 8387c8bec6c50f358469e1394fc3c2c10f31a4ddd77930effdbd7734dadc85cd9ab871278e57af4dcf26b6accbaf1d193dd851f7c7270f0f301d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203130
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Put
  te: trailers
  content-type: application/grpc
  grpc-timeout: 4826m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: SkTcFTZCBKgP6A6QOUVcwWCCgYIP4rJPHlIzreavHdU
  x-name: Jürgen Müller — Ωmega 10

hpack 8387e7dde5e47f018465f0b34fe3e2e17f01a3def4d665ecee7dafe6c5d303aeb419bf3476d757a7bca33f747aba6f1930f83e176c9b7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d4087
nghttp2 8387e4048d61139eb5fb857bc3b12c622a7fe3e27f018465f0b34fe1e0df7f01a3def4d665ecee7dafe6c5d303aeb419bf3476d757a7bca33f747aba6f1930f83e176c9b7f011d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203131
maitred 8387c8448d61139eb5fb857bc3b12c622a7fc7c60f368465f0b34fc4c3c20f32a3def4d665ecee7dafe6c5d303aeb419bf3476d757a7bca33f747aba6f1930f83e176c9b0f311d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203131
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Get
  te: trailers
  content-type: application/grpc
  grpc-timeout: 3913m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: T8grJq7LR9KGjE7741gXMqPny8xsLvsyBiwIFwoF7rg
  x-name: Jürgen Müller — Ωmega 11

hpack 8387eae9e8e77f01841040ed3fe6e5e47f01a31871f0d123f24be7613ba1dd0fb6ecbae49e7f0eecc557846dfd9cffedd73d3bdb6cdf7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d408b
nghttp2 8387e7048d61139eb5fb857bc3b12c673213e6e57f01841040ed3fe4e3e27f01a31871f0d123f24be7613ba1dd0fb6ecbae49e7f0eecc557846dfd9cffedd73d3bdb6cdf7f011d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203132
maitred 8387c9c8c7c60f36841040ed3fc4c3c20f32a31871f0d123f24be7613ba1dd0fb6ecbae49e7f0eecc557846dfd9cffedd73d3bdb6cdf0f311d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203132
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/List
  te: trailers
  content-type: application/grpc
  grpc-timeout: 2107m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: a1HUMd9dfxQcvs7M957fPdhhw7QGnwsRZho+76y7qRg
  x-name: Jürgen Müller — Ωmega 12

hpack 8387edecebea7f0184089c6a9fe9e8e77f01a4d6fdbd3f3c6f274c1ceb9d14eeefae70f1c597f306fbbebb6caaef3ef2f526ae575aaa6f7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d40b3
nghttp2 8387ea048d61139eb5fb857bc3b12c673213e9e87f0184089c6a9fe7e6e57f01a4d6fdbd3f3c6f274c1ceb9d14eeefae70f1c597f306fbbebb6caaef3ef2f526ae575aaa6f7f011d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203133
maitred 8387c9c8c7c60f3684089c6a9fc4c3c20f32a4d6fdbd3f3c6f274c1ceb9d14eeefae70f1c597f306fbbebb6caaef3ef2f526ae575aaa6f0f311d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203133
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/List
  te: trailers
  content-type: application/grpc
  grpc-timeout: 1264m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: P9ujXwTcjEYphsmSvPh1VGJXETByqQnBYvfkcOWB4ng
  x-name: Jürgen Müller — Ωmega 13

hpack 8387f0e2eeed7f018469f65ea7ecebea7f01a29f714fd4b93ae0151b18f79f364dc9c3df2eb154edb0e3be82f74d9872b3f8dd54e07f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d40b5
nghttp2 8387ed048d61139eb5fb857bc3b12c6bb53feceb7f018469f65ea7eae9e87f01a29f714fd4b93ae0151b18f79f364dc9c3df2eb154edb0e3be82f74d9872b3f8dd54e07f011d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203134
maitred 8387c9bfc7c60f368469f65ea7c4c3c20f32a29f714fd4b93ae0151b18f79f364dc9c3df2eb154edb0e3be82f74d9872b3f8dd54e00f311d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203134
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Put
  te: trailers
  content-type: application/grpc
  grpc-timeout: 4938m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: hSeokeIkE2lQ/zLKIStFvJP2n7uAHDsevtrFJ3X5nmE
  x-name: Jürgen Müller — Ωmega 14

hpack 8387f3e5f1f07f01840b816a9fefeeed7f01a36cd539fbfbd3f34543d72e3cb66e164dd3cb55fb70e8bfd61ed5e09b0be91617ccfa3f7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d40b7
nghttp2 8387f0048d61139eb5fb857bc3b12c6bb53fefee7f01840b816a9fedeceb7f01a36cd539fbfbd3f34543d72e3cb66e164dd3cb55fb70e8bfd61ed5e09b0be91617ccfa3f7f011d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203135
maitred 8387c9bfc7c60f36840b816a9fc4c3c20f32a36cd539fbfbd3f34543d72e3cb66e164dd3cb55fb70e8bfd61ed5e09b0be91617ccfa3f0f311d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203135
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Put
  te: trailers
  content-type: application/grpc
  grpc-timeout: 1614m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: 5in6ZZjXMnaPfHJrS2IShfnDuFMDkAqpEgF9t2F9i9s
  x-name: Jürgen Müller — Ωmega 15

hpack 8387f6ecf4f37f01840b207a9ff2f1f07f01a347e3a207ef97397974fa9bbaf72e3c29673e3b2ea6dbd95ffdd81905376977eae9a7af7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d40b9
nghttp2 8387f3048d61139eb5fb857bc3b12c622a7ff2f17f01840b207a9ff0efee7f01a347e3a207ef97397974fa9bbaf72e3c29673e3b2ea6dbd95ffdd81905376977eae9a7af7f011d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203136
maitred 8387c9bec7c60f36840b207a9fc4c3c20f32a347e3a207ef97397974fa9bbaf72e3c29673e3b2ea6dbd95ffdd81905376977eae9a7af0f311d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203136
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Get
  te: trailers
  content-type: application/grpc
  grpc-timeout: 1308m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: sX720Zx6Wx7oO5B8WVUm3LHrBtuCJ9ZQ1d2gqfTOjNk
  x-name: Jürgen Müller — Ωmega 16

hpack 8387f9f8f7f67f018469d79ca7f5f4f37f01a5dbbb4f0bfe7860f7b49b2fe0982e614ffb75fddfb838cdafa7763c72fdedaf35fef4da5d1f7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d40bb
nghttp2 8387f6048d61139eb5fb857bc3b12c673213f5f47f018469d79ca7f3f2f17f01a5dbbb4f0bfe7860f7b49b2fe0982e614ffb75fddfb838cdafa7763c72fdedaf35fef4da5d1f7f011d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203137
maitred 8387c9c8c7c60f368469d79ca7c4c3c20f32a5dbbb4f0bfe7860f7b49b2fe0982e614ffb75fddfb838cdafa7763c72fdedaf35fef4da5d1f0f311d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203137
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/List
  te: trailers
  content-type: application/grpc
  grpc-timeout: 4786m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: RSNUDxUEzRcQDEg16Ft+79SZEVgPjv/wWZqPKDvmueM
  x-name: Jürgen Müller — Ωmega 17

hpack 8387418c9acac8b97c8e9ae82ae43d3fef4082497f864d833505b11f5f8b1d75d0620d263d4c4d65647f04840becbd4f7aa39acac8b13fdffb602bb805c0a4d6564588c32eae05c0a7f541aab7cfda849d29ac5fdf408e9acac8b0c842d6958b510f21aa9b913485a9264fafa5242cb40d25fa526f66af4086f2b169ad3ebf807f07a3de8a3f6a7b25f07e0fa43c74a33cdd478a3f5872869f5c6309f164c19b623f3fd8381f7f07a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d40bd
nghttp2 8387f9048d61139eb5fb857bc3b12c6bb53ff8f77f01840becbd4ff6f5f47f01a3de8a3f6a7b25f07e0fa43c74a33cdd478a3f5872869f5c6309f164c19b623f3fd8381f7f011d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203138
maitred 8387c9bfc7c60f36840becbd4fc4c3c20f32a3de8a3f6a7b25f07e0fa43c74a33cdd478a3f5872869f5c6309f164c19b623f3fd8381f0f311d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203138
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Put
  te: trailers
  content-type: application/grpc
  grpc-timeout: 1938m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: TslZn8ID0XajAVNsLgkaGbyFJ1myVb1oGIEKQsX+0Uo
  x-name: Jürgen Müller — Ωmega 18

hpack 8387c6f7c5c47f048465a7814fc3c2c17f01a2a21bfe513fa0e57e5735ef72cb6bd3c4b3f4b1b733e6dfd4846286f47207aa9f113f7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d40bf
nghttp2 8387418c9acac8b97c8e9ae82ae43d3f048d61139eb5fb857bc3b12c6bb53f40027465864d833505b11f5f8b1d75d0620d263d4c4d65647f048465a7814f7aa39acac8b13fdffb602bb805c0a4d6564588c32eae05c0a7f541aab7cfda849d29ac5fdf408e9acac8b0c842d6958b510f21aa9b913485a9264fafa5242cb40d25fa526f66af4086f2b169ad3ebf007f07a2a21bfe513fa0e57e5735ef72cb6bd3c4b3f4b1b733e6dfd4846286f47207aa9f113f7f071d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203139
maitred 8387c9bfc7c60f368465a7814fc4c3c20f32a2a21bfe513fa0e57e5735ef72cb6bd3c4b3f4b1b733e6dfd4846286f47207aa9f113f0f311d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203139
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Put
  te: trailers
  content-type: application/grpc
  grpc-timeout: 3480m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: lADxshy1J9f6PT6rupNVehjr56LKTkcc/l5MW0yn92c
  x-name: Jürgen Müller — Ωmega 19

hpack 8387c9448d61139eb5fb857bc3b12c622a7fc9c87f0284680d334fc7c6c57f02a27c8769f01a70db63396c375ceef10f87892e2c5b8f86fe8ba5bcccfac79ff725e47f7f02a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d4103
nghttp2 8387c6048d61139eb5fb857bc3b12c622a7fc5c47f0484680d334fc3c2c17f01a27c8769f01a70db63396c375ceef10f87892e2c5b8f86fe8ba5bcccfac79ff725e47f7f011d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203230
maitred 8387c9bec7c60f3684680d334fc4c3c20f32a27c8769f01a70db63396c375ceef10f87892e2c5b8f86fe8ba5bcccfac79ff725e47f0f311d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203230
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Get
  te: trailers
  content-type: application/grpc
  grpc-timeout: 4043m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: 9co490ih1ur3JrikL7V1w8cfGGSoFDMBeC3hPaLZICs
  x-name: Jürgen Müller — Ωmega 20

hpack 8387cd448d61139eb5fb857bc3b12c6bb53fcdcc7f02846990bd4fcbcac97f02a28c09a704f9654397c6ee9cadd5285155ea7865d62dd7db4789b6de37897bf37f068f7f02a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d4107
nghttp2 8387c9048d61139eb5fb857bc3b12c6bb53fc8c77f01846990bd4fc6c5c47f01a28c09a704f9654397c6ee9cadd5285155ea7865d62dd7db4789b6de37897bf37f068f7f011d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203231
maitred 8387c9bfc7c60f36846990bd4fc4c3c20f32a28c09a704f9654397c6ee9cadd5285155ea7865d62dd7db4789b6de37897bf37f068f0f311d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203231
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Put
  te: trailers
  content-type: application/grpc
  grpc-timeout: 4318m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: b0tmEhJfs6Da7NJ5nf1snCmUJP2SD5swgRCiwfvY9EM
  x-name: Jürgen Müller — Ωmega 21

hpack 8387d1448d61139eb5fb857bc3b12c673213d1d07f02840b8ebf4fcfcecd7f02a52e17bfdf9ff68f4f78b767bd8c6bd344bbcd9ff18d95cbebfdfe61eefd2e46325d919d9d7f7f02a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d410b
nghttp2 8387cc048d61139eb5fb857bc3b12c673213cbca7f01840b8ebf4fc9c8c77f01a52e17bfdf9ff68f4f78b767bd8c6bd344bbcd9ff18d95cbebfdfe61eefd2e46325d919d9d7f7f011d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203232
maitred 8387c9c8c7c60f36840b8ebf4fc4c3c20f32a52e17bfdf9ff68f4f78b767bd8c6bd344bbcd9ff18d95cbebfdfe61eefd2e46325d919d9d7f0f311d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203232
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/List
  te: trailers
  content-type: application/grpc
  grpc-timeout: 1679m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: eF8+x+sy8wuQzQ/PNlfTiLX/Qpfy+XFv9m6bacBd3Qk
  x-name: Jürgen Müller — Ωmega 22

hpack 8387d5c5d4d37f018369e6a9d2d1d07f01a4e01ff7d2ffe35433cebcaf71d3517f34eaf57a79ef69c1c4545dc2165e77673fce6fb70f7f01a7cbfffc7ffff859316a5347fff1ffffe14505b14fffedfffe6ffffee53ffffc7fffdda4b30d4133
nghttp2 8387cf048d61139eb5fb857bc3b12c6bb53fcecd7f018369e6a9cccbca7f01a4e01ff7d2ffe35433cebcaf71d3517f34eaf57a79ef69c1c4545dc2165e77673fce6fb70f7f011d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203233
maitred 8387c9bfc7c60f368369e6a9c4c3c20f32a4e01ff7d2ffe35433cebcaf71d3517f34eaf57a79ef69c1c4545dc2165e77673fce6fb70f0f311d4ac3bc7267656e204dc3bc6c6c657220e2809420cea96d656761203233
  :method: POST
  :scheme: https
  :authority: grpc.example.com
  :path: /shop.v1.Cart/Put
  te: trailers
  content-type: application/grpc
  grpc-timeout: 484m
  user-agent: grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)
  grpc-accept-encoding: identity, deflate, gzip
  x-empty:
  x-binary-bin: U1+jDX4l3YpJ8VNneXNOyChhCNEV2lBF1387QYXY95A
  x-name: Jürgen Müller — Ωmega 23
