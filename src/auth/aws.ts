/** Signatures of AWS, version 4, by credentials that are refreshed once for all calls. */
import { createHash, createHmac } from 'node:crypto'
import type { SignatureV4 } from '@smithy/signature-v4'
import { z } from 'zod'
import type { AuthOf } from '../../schemas/config/channel-auth.ts'
import type { Authorization, Authorizer, AuthorizerDeps, SignedRequest } from './interface.ts'
import { type Expiring, TokenCache } from './token-cache.ts'

type Auth = AuthOf<'aws-sigv4'>

interface Credentials extends Expiring {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
}

interface Signing extends Expiring {
  readonly signer: SignatureV4
  readonly secret: string
}

/** The hash that the signer asks for. */
class Sha256 {
  readonly #hash
  constructor(secret?: Parameters<typeof createHmac>[1]) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret)
  }
  update(data: Uint8Array | string): void {
    this.#hash.update(data)
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest()
  }
  reset(): void {}
}

async function makeSigner(
  credentials: Credentials,
  scope: { region: string; service: string },
): Promise<SignatureV4> {
  const { SignatureV4: Signer } = await import('@smithy/signature-v4')
  return new Signer({ credentials, ...scope, sha256: Sha256 as never, applyChecksum: false })
}

/** Returns the headers that a request carries, its signature included. */
async function signRequest(
  signer: SignatureV4,
  { method, url, contentType, body }: SignedRequest,
  now: number,
): Promise<Authorization['headers']> {
  const request = {
    method,
    protocol: url.protocol,
    hostname: url.hostname,
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: { host: url.host, ...(contentType !== '' && { 'content-type': contentType }) },
    body,
  }
  const { headers } = (await signer.sign(request as never, { signingDate: new Date(now) })) as unknown as {
    readonly headers: Readonly<Record<string, string>>
  }
  return Object.entries(headers).filter(([name]) => name === 'authorization' || name.startsWith('x-amz-'))
}

/** Returns the credentials without a role: those of the configuration, or of what the environment of the process has. */
async function readOwnCredentials(auth: Auth, now: () => number): Promise<Credentials> {
  const { access_key_id: id, secret_access_key: secret, session_token: sessionToken, profile } = auth
  if (id !== undefined && secret !== undefined)
    return { accessKeyId: id, secretAccessKey: secret, sessionToken, lifeMs: Number.POSITIVE_INFINITY }
  const { defaultProvider } = await import('@aws-sdk/credential-provider-node')
  const found = await defaultProvider(profile === undefined ? {} : { profile })()
  const { expiration } = found
  return { ...found, lifeMs: expiration ? expiration.getTime() - now() : Number.POSITIVE_INFINITY }
}

const SESSION_NAME = 'tollgate'
const STS_VERSION = '2011-06-15'

const assumed = z.object({
  AssumeRoleResponse: z.object({
    AssumeRoleResult: z.object({
      Credentials: z.object({
        AccessKeyId: z.string(),
        SecretAccessKey: z.string(),
        SessionToken: z.string(),
        /** Seconds since 1970. */
        Expiration: z.number(),
      }),
    }),
  }),
})
const stsError = z.object({
  Error: z.object({ Code: z.string().optional(), Message: z.string().optional() }),
})
const MS_PER_SECOND = 1000

/** Takes on the role by one signed request to the Security Token Service of the region. */
async function assumeRole(auth: Auth, roleArn: string, deps: AuthorizerDeps): Promise<Credentials> {
  const own = await readOwnCredentials(auth, deps.now)
  const url = new URL(deps.env.AWS_ENDPOINT_URL_STS ?? `https://sts.${auth.region}.amazonaws.com/`)
  const contentType = 'application/x-www-form-urlencoded'
  const form = new URLSearchParams({
    Action: 'AssumeRole',
    Version: STS_VERSION,
    RoleArn: roleArn,
    RoleSessionName: SESSION_NAME,
    ...(auth.external_id !== undefined && { ExternalId: auth.external_id }),
  })
  const body = new TextEncoder().encode(form.toString())
  const signer = await makeSigner(own, { region: auth.region, service: 'sts' })
  const headers = await signRequest(signer, { method: 'POST', url, contentType, body }, deps.now())
  const answer = await deps.fetch(url, {
    method: 'POST',
    redirect: 'error',
    headers: [
      ['content-type', contentType],
      ['accept', 'application/json'],
      ...headers.map(([n, v]) => [n, v] as [string, string]),
    ],
    body,
  })
  const value: unknown = await answer.json().catch(() => null)
  if (!answer.ok) {
    const { Code = '', Message = 'no reason is given' } = stsError.safeParse(value).data?.Error ?? {}
    throw new Error(`the role was refused with status ${answer.status}: ${Code} ${Message}`)
  }
  const { success, data } = assumed.safeParse(value)
  if (!success) throw new Error('the answer to AssumeRole has no credentials')
  const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } =
    data.AssumeRoleResponse.AssumeRoleResult.Credentials
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: SecretAccessKey,
    sessionToken: SessionToken,
    lifeMs: Expiration * MS_PER_SECOND - deps.now(),
  }
}

export function awsSignatures(
  auth: Auth,
  deps: AuthorizerDeps,
  named: <T>(work: () => Promise<T>) => () => Promise<T>,
): Authorizer {
  const { region, service, role_arn: role } = auth
  const cache = new TokenCache<Signing>(
    named(async () => {
      const credentials = await (role === undefined
        ? readOwnCredentials(auth, deps.now)
        : assumeRole(auth, role, deps))
      const signer = await makeSigner(credentials, { region, service })
      return { signer, secret: credentials.sessionToken ?? '', lifeMs: credentials.lifeMs }
    }),
    deps.elapsed,
  )
  return {
    async authorize(request) {
      const source = await cache.get()
      return { headers: await signRequest(source.signer, request, deps.now()), source, secret: source.secret }
    },
    // Credentials that end by themselves may have been withdrawn; those of the configuration stay the same.
    dropRefused: ({ source }) =>
      Number.isFinite((source as Signing).lifeMs) && cache.dropRefused(source as Signing),
  }
}
