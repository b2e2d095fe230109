/** Cases of the test suite that AWS publishes for Signature Version 4, by their names there. */
import t from 'tap'
import { type Asked, authorizationOf, HOUR_MS, json, NO_REQUEST, open, serve } from './support.ts'

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
    json(
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
    json(response, 403, {
      Error: { Code: 'AccessDenied', Message: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY may not assume it' },
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
