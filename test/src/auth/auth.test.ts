/** Authorization at upstreams without an API key. */
import { generateKeyPairSync } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import t from 'tap'
import { sendJson } from '../../support/http-server.ts'
import { type Asked, authorizationOf, FIVE_MINUTES_MS, HOUR_MS, NO_REQUEST, open, serve } from './support.ts'

t.test('requests are signed as aws publishes it', async (t) => {
  // Cases of the test suite that AWS publishes for Signature Version 4, by their names there.
  const KEYS = 'access_key_id: AKIDEXAMPLE, secret_access_key: wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
  const SIGNED_AT = Date.UTC(2015, 7, 30, 12, 36)
  const FORM = 'application/x-www-form-urlencoded'

  interface Case {
    readonly method: string
    readonly path: string
    readonly contentType?: string
    readonly body?: string
    readonly signature: string
  }

  const CASES: Readonly<Record<string, Case>> = {
    'get-vanilla': {
      method: 'GET',
      path: '/',
      signature: '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
    },
    'get-vanilla-empty-query-key': {
      method: 'GET',
      path: '/?Param1=value1',
      signature: 'a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb',
    },
    'get-vanilla-query-order-key-case': {
      method: 'GET',
      path: '/?Param2=value2&Param1=value1',
      signature: 'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
    },
    'get-vanilla-query-unreserved': {
      method: 'GET',
      path: '/?-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
      signature: '9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197',
    },
    'get-vanilla-utf8-query': {
      method: 'GET',
      path: '/?ሴ=bar',
      signature: '2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04',
    },
    'get-unreserved': {
      method: 'GET',
      path: '/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
      signature: '07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f',
    },
    'post-vanilla': {
      method: 'POST',
      path: '/',
      signature: '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
    },
    'post-vanilla-query': {
      method: 'POST',
      path: '/?Param1=value1',
      signature: '28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11',
    },
    'post-x-www-form-urlencoded': {
      method: 'POST',
      path: '/',
      contentType: FORM,
      body: 'Param1=value1',
      signature: 'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
    },
  }

  t.test('the published cases', async (t) => {
    const { access } = open(`type: aws-sigv4, region: us-east-1, service: service, ${KEYS}`, {
      now: () => SIGNED_AT,
    })
    for (const [name, { method, path, contentType = '', body = '', signature }] of Object.entries(CASES)) {
      const url = new URL(path, 'https://example.amazonaws.com')
      const { headers } = await access.authorize({ method, url, contentType, body: Buffer.from(body) })
      const signedHeaders = contentType === '' ? 'host;x-amz-date' : 'content-type;host;x-amz-date'
      t.same(
        Object.fromEntries(headers),
        {
          'x-amz-date': '20150830T123600Z',
          authorization: `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=${signedHeaders}, Signature=${signature}`,
        },
        name,
      )
    }
  })

  t.test('a session token is signed and sent along', async (t) => {
    const { access, tokens } = open(
      `type: aws-sigv4, region: us-east-1, ${KEYS}, session_token: session-token-1`,
    )
    const { headers } = await access.authorize(NO_REQUEST)
    t.equal(Object.fromEntries(headers)['x-amz-security-token'], 'session-token-1')
    t.match(
      Object.fromEntries(headers).authorization,
      /SignedHeaders=content-type;host;x-amz-date;x-amz-security-token,/,
    )
    t.same(tokens, ['session-token-1'])
  })

  const role = 'role_arn: "arn:aws:iam::123456789012:role/tollgate", external_id: e-1'

  /** Answers AssumeRole as the service does where JSON is asked for. */
  function assumed(now: () => number, number: number): object {
    const Credentials = {
      AccessKeyId: `ASIA${number}`,
      SecretAccessKey: `secret-of-role-${number}`,
      SessionToken: `session-of-role-${number}`,
      Expiration: (now() + HOUR_MS) / 1000,
    }
    return { AssumeRoleResponse: { AssumeRoleResult: { Credentials } } }
  }

  t.test('a role is taken on once for all calls, and again before its credentials end', async (t) => {
    let now = SIGNED_AT
    const sts = await serve(t, (_, response, number) =>
      sendJson(
        response,
        200,
        assumed(() => now, number),
      ),
    )
    const { access } = open(`type: aws-sigv4, region: eu-west-1, ${KEYS}, ${role}`, {
      now: () => now,
      env: { AWS_ENDPOINT_URL_STS: sts.url },
    })
    const first = await Promise.all(Array.from({ length: 100 }, () => authorizationOf(access)))
    t.equal(sts.asked.length, 1)
    for (const authorization of first)
      t.match(authorization, /Credential=ASIA1\/20150830\/eu-west-1\/bedrock\/aws4_request/)
    const [{ headers, body }] = sts.asked as [Asked]
    t.match(headers.authorization, /Credential=AKIDEXAMPLE\/20150830\/eu-west-1\/sts\/aws4_request/)
    t.same(Object.fromEntries(new URLSearchParams(body)), {
      Action: 'AssumeRole',
      Version: '2011-06-15',
      RoleArn: 'arn:aws:iam::123456789012:role/tollgate',
      RoleSessionName: 'tollgate',
      ExternalId: 'e-1',
    })
    now += HOUR_MS
    t.match(await authorizationOf(access), /Credential=ASIA2\//)
  })

  t.test('a refused role says why, without the keys', async (t) => {
    const sts = await serve(t, (_, response) =>
      sendJson(response, 403, {
        Error: {
          Code: 'AccessDenied',
          Message: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY may not assume it',
        },
      }),
    )
    const { access, problems } = open(`type: aws-sigv4, region: eu-west-1, ${KEYS}, ${role}`, {
      env: { AWS_ENDPOINT_URL_STS: sts.url },
    })
    await t.rejects(authorizationOf(access), {
      name: 'AuthorizationFailure',
      message:
        'No access to the upstream by aws-sigv4: the role was refused with status 403: AccessDenied [secret] may not assume it',
    })
    t.equal(problems.length, 1)
  })

  t.test('without keys the environment of the process has the credentials', async (t) => {
    const former = { ...process.env }
    t.teardown(() => {
      process.env = former
    })
    process.env.AWS_ACCESS_KEY_ID = 'AKIDENVIRONMENT'
    process.env.AWS_SECRET_ACCESS_KEY = 'secret-of-environment'
    const { access } = open('type: aws-sigv4, region: us-east-1')
    t.match(await authorizationOf(access), /Credential=AKIDENVIRONMENT\//)
  })
})

t.test('tokens are fetched once for all calls', async (t) => {
  const CALLS = 1_000
  const entra = (url: string) =>
    `type: azure-entra, tenant_id: tenant-1, client_id: client-1, client_secret: client-secret-1, authority: "${url}"`

  const token = (number: number) => ({ access_token: `token-number-${number}`, expires_in: HOUR_MS / 1000 })

  /** An answer without a date says nothing about the clock. */
  const undated: typeof fetch = async (...request) => {
    const answer = await fetch(...request)
    return new Response(answer.body, { status: answer.status })
  }

  t.test('1,000 calls over the end of a token: one refresh', async (t) => {
    const server = await serve(t, (_, response, number) =>
      setTimeout(() => sendJson(response, 200, token(number)), 50),
    )
    let now = 1_700_000_000_000
    const { access } = open(entra(server.url), { now: () => now })
    const all = () => Promise.all(Array.from({ length: CALLS }, () => authorizationOf(access)))
    t.same([...new Set(await all())], ['Bearer token-number-1'])
    t.equal(server.asked.length, 1)
    t.match(server.asked[0], { path: '/tenant-1/oauth2/v2.0/token' })
    t.same(Object.fromEntries(new URLSearchParams(server.asked[0]!.body)), {
      grant_type: 'client_credentials',
      client_id: 'client-1',
      client_secret: 'client-secret-1',
      scope: 'https://cognitiveservices.azure.com/.default',
    })
    now += HOUR_MS
    t.same([...new Set(await all())], ['Bearer token-number-2'])
    t.equal(server.asked.length, 2)
  })

  t.test('before its end calls go on with the token while one refresh runs', async (t) => {
    const server = await serve(t, (_, response, number) => sendJson(response, 200, token(number)))
    let now = 1_700_000_000_000
    const { access } = open(entra(server.url), { now: () => now })
    await authorizationOf(access)
    now += HOUR_MS - FIVE_MINUTES_MS
    const passes = Array.from({ length: CALLS }, () => access.authorize(NO_REQUEST))
    t.notOk(
      passes.some((pass) => pass instanceof Promise),
      'no call waits',
    )
    const renewed = async (): Promise<string> => {
      const now = await authorizationOf(access)
      if (now === 'Bearer token-number-2') return now
      await new Promise((resolve) => setTimeout(resolve, 5))
      return renewed()
    }
    t.equal(await renewed(), 'Bearer token-number-2')
    t.equal(server.asked.length, 2)
  })

  t.test('a clock that is set back lengthens no life and no rest', async (t) => {
    const server = await serve(t, (_, response, number) =>
      number === 2 ? sendJson(response, 400, { error: 'clock' }) : sendJson(response, 200, token(number)),
    )
    let now = 1_700_000_000_000
    let elapsed = 0
    const { access } = open(entra(server.url), { now: () => now, elapsed: () => elapsed, fetch: undated })
    t.equal(await authorizationOf(access), 'Bearer token-number-1')
    now -= HOUR_MS
    elapsed += HOUR_MS
    await t.rejects(authorizationOf(access), { name: 'AuthorizationFailure' }, 'the token has ended')
    now -= HOUR_MS
    elapsed += 1_000
    t.equal(await authorizationOf(access), 'Bearer token-number-3', 'after a failure')
  })

  t.test('a server that is away says nothing about the clock', async (t) => {
    const server = await serve(t, (_, response, number) => sendJson(response, 200, token(number)))
    let now = Date.now()
    let isAway = false
    const { access } = open(entra(server.url), {
      now: () => now,
      fetch: (...request) => (isAway ? Promise.reject(new TypeError('fetch failed')) : fetch(...request)),
    })
    await authorizationOf(access)
    isAway = true
    now += HOUR_MS
    await t.rejects(authorizationOf(access), {
      message: 'No access to the upstream by azure-entra: fetch failed',
    })
  })

  t.test('a refused token is replaced once, however many calls it was refused to', async (t) => {
    const server = await serve(t, (_, response, number) => sendJson(response, 200, token(number)))
    const { access } = open(entra(server.url))
    const passes = await Promise.all(Array.from({ length: CALLS }, () => access.authorize(NO_REQUEST)))
    t.ok(passes.every((pass) => access.dropRefused(pass, 401)))
    const again = await Promise.all(Array.from({ length: CALLS }, () => access.authorize(NO_REQUEST)))
    t.same([...new Set(again.map(({ secret }) => secret))], ['token-number-2'])
    t.equal(server.asked.length, 2)
    t.notOk(access.dropRefused(again[0]!, 401), 'the next one is not replaced so soon')
    t.notOk(access.dropRefused(passes[0]!, 403), 'another refusal is not about the token')
  })

  t.test(
    'a refusal of the token server names no secret, and later calls fail without a request',
    async (t) => {
      const server = await serve(t, (_, response) =>
        sendJson(response, 401, {
          error: 'invalid_client',
          error_description: 'The secret client-secret-1 is wrong.',
        }),
      )
      const { access, problems } = open(entra(server.url), { now: () => 1_700_000_000_000, fetch: undated })
      const message =
        'No access to the upstream by azure-entra: the token endpoint answered with status 401: The secret [secret] is wrong.'
      await t.rejects(authorizationOf(access), { message })
      await t.rejects(authorizationOf(access), { message })
      t.equal(server.asked.length, 1)
      t.equal(problems.length, 1)
    },
  )

  t.test('a clock that is wrong by five minutes is named', async (t) => {
    const date = new Date(1_700_000_000_000)
    const server = await serve(t, (_, response) =>
      sendJson(response, 400, { error: 'invalid_grant' }, { date: date.toUTCString() }),
    )
    for (const [shift, way] of [
      [FIVE_MINUTES_MS, 'ahead of'],
      [-FIVE_MINUTES_MS, 'behind'],
    ] as const) {
      const { access } = open(entra(server.url), { now: () => date.getTime() + shift })
      await t.rejects(authorizationOf(access), {
        message: new RegExp(
          `The clock of this machine is wrong: it is 300 seconds ${way} that of the server`,
        ),
      })
    }
  })

  t.test('the key of a service account signs for a token of Google', async (t) => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
    const server = await serve(t, (_, response, number) => sendJson(response, 200, token(number)))
    const account = { type: 'service_account', client_email: 'a@p.iam.gserviceaccount.com', private_key: key }
    const asked: string[] = []
    const { access } = open(`type: google, credentials: ${JSON.stringify(JSON.stringify(account))}`, {
      // The library has the address of Google's token endpoint in its code.
      fetch: (input, init) => {
        asked.push(String(input))
        return fetch(server.url, init)
      },
    })
    const all = await Promise.all(Array.from({ length: CALLS }, () => authorizationOf(access)))
    t.same([...new Set(all)], ['Bearer token-number-1'])
    t.same(asked, ['https://oauth2.googleapis.com/token'])
    const { payload } = await jwtVerify(
      new URLSearchParams(server.asked[0]!.body).get('assertion')!,
      publicKey,
    )
    t.match(payload, {
      iss: 'a@p.iam.gserviceaccount.com',
      scope: 'https://www.googleapis.com/auth/cloud-platform',
      aud: 'https://oauth2.googleapis.com/token',
    })
  })

  t.test('without credentials the metadata server of the machine has the token', async (t) => {
    const server = await serve(t, (_, response, number) => {
      response.setHeader('metadata-flavor', 'Google')
      sendJson(response, 200, token(number))
    })
    const former = { ...process.env }
    t.teardown(() => {
      process.env = former
    })
    process.env.GCE_METADATA_HOST = new URL(server.url).host
    process.env.METADATA_SERVER_DETECTION = 'assume-present'
    process.env.HOME = t.testdir()
    const { access } = open('type: google')
    const all = await Promise.all(Array.from({ length: CALLS }, () => authorizationOf(access)))
    t.match(all[0], /^Bearer token-number-\d+$/)
    t.equal(new Set(all).size, 1)
    const tokens = server.asked.filter(({ path }) => path.includes('/service-accounts/default/token'))
    t.equal(tokens.length, 1)
  })

  t.test('broken credentials are not quoted', async (t) => {
    const { access } = open('type: google, credentials: "{ private_key-1 "')
    await t.rejects(authorizationOf(access), {
      message:
        'No access to the upstream by google: `credentials` is not the JSON text of a file of credentials',
    })
  })

  t.test('a signed token of 30 minutes, replaced before its end', async (t) => {
    let now = 1_700_000_000_000
    const secret = 'secret-key-of-thirty-two-characters'
    const { access } = open(`type: jwt-hs256, access_key: access-1, secret_key: ${secret}`, {
      now: () => now,
    })
    const text = (await authorizationOf(access)).slice('Bearer '.length)
    t.same(decodeProtectedHeader(text), { alg: 'HS256', typ: 'JWT' })
    const second = now / 1000
    t.same(decodeJwt(text), { iss: 'access-1', exp: second + 1800, nbf: second - 5 })
    await jwtVerify(text, new TextEncoder().encode(secret), { currentDate: new Date(now) })
    now += 30 * 60_000
    t.not((await authorizationOf(access)).slice('Bearer '.length), text)
  })
})
