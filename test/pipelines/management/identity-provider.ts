/** An identity provider by others, at which persons are signed in as soon as they come. */
import type { RequestListener } from 'node:http'
import Provider from 'oidc-provider'
import type { Test } from 'tap'
import { serveHttp } from '../../support/http-server.ts'

export interface Person {
  readonly email: string
  readonly email_verified: boolean
  readonly name: string
}

const CLIENT = { client_id: 'tollgate', client_secret: 'a-secret-of-the-client' }

/** Starts a provider that knows these persons by their subject, and answers once it knows where to redirect to. */
export async function startProvider(t: Test, persons: Readonly<Record<string, Person>>) {
  let handle: ReturnType<Provider['callback']> = () => {}
  let current = ''
  let allowed = ''
  let fault: RequestListener | null = null
  const issuer = await serveHttp(t, (request, response) => (fault ?? handle)(request, response))
  /** Lets the provider redirect to this address alone. */
  const redirectTo = (redirectUri: string) => {
    allowed = redirectUri
    const provider = new Provider(issuer, {
      clients: [
        {
          ...CLIENT,
          redirect_uris: [redirectUri],
          response_types: ['code'],
          grant_types: ['authorization_code'],
        },
      ],
      pkce: { required: () => true },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
      findAccount: (_: unknown, accountId: string) => ({
        accountId,
        claims: () => ({ sub: accountId, ...persons[accountId] }),
      }),
      features: { devInteractions: { enabled: false } },
      interactions: {
        url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}`,
      },
      cookies: { keys: ['a key of the cookies'] },
      ttl: { AccessToken: 60, AuthorizationCode: 60, IdToken: 60, Interaction: 60, Session: 60, Grant: 60 },
    } as object) as Provider & Interactions
    const callback = provider.callback()
    handle = (request, response) => {
      if (!request.url?.startsWith('/interaction/')) return callback(request, response)
      void answerInteraction(provider, request, response, current)
    }
  }
  return {
    config: { id: 'corp', name: 'Corp', issuer, ...CLIENT },
    redirectTo,
    /** Has every request answered by this from now on; null: by the provider again. */
    answerBy(instead: RequestListener | null): void {
      fault = instead
    },
    /** Chooses the person whom the provider signs in from now on. */
    become(subject: string): void {
      current = subject
    },
    /** Goes to the provider as a person, and returns the query with which it sends the browser back. */
    async visit(url: string, subject: string): Promise<string> {
      current = subject
      const cookies = new Map<string, string>()
      let next = url
      for (let hops = 0; hops < 10; hops++) {
        const response = await fetch(next, {
          redirect: 'manual',
          headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
        })
        for (const cookie of response.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
          cookies.set(name, value)
        }
        const location = response.headers.get('location')
        if (location === null) throw new Error(`${response.status} ${await response.text()}`)
        next = new URL(location, next).href
        if (next.startsWith(allowed)) return new URL(next).search.slice(1)
      }
      throw new Error('The provider redirects without end')
    },
  }
}

interface Interactions {
  interactionDetails(request: unknown, response: unknown): Promise<InteractionDetails>
  interactionFinished(request: unknown, response: unknown, result: object, options: object): Promise<void>
  Grant: new (of: object) => { addOIDCScope(scope: string): void; save(): Promise<string> }
}

interface InteractionDetails {
  readonly prompt: { readonly name: string }
  readonly params: { readonly client_id: string; readonly scope: string }
  readonly session?: { readonly accountId: string }
}

/** Signs the person in, or consents in their name. */
async function answerInteraction(
  provider: Interactions,
  request: unknown,
  response: unknown,
  subject: string,
): Promise<void> {
  const { prompt, params } = await provider.interactionDetails(request, response)
  const options = { mergeWithLastSubmission: true }
  if (prompt.name === 'login')
    return provider.interactionFinished(request, response, { login: { accountId: subject } }, options)
  const grant = new provider.Grant({ accountId: subject, clientId: params.client_id })
  grant.addOIDCScope(params.scope)
  return provider.interactionFinished(
    request,
    response,
    { consent: { grantId: await grant.save() } },
    options,
  )
}
