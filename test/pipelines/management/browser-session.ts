/** A person with a browser, as the acts of the management API see them. */

import { type Caller, userCaller, VISITOR } from '../../../pipelines/management/caller.ts'
import { findImplementation, runImplementation } from '../../../pipelines/management/operation.ts'
import type { PeopleServices } from '../../../pipelines/management/people/rules.ts'
import type { Operation } from '../../../schemas/management/operation.ts'
import { hashToken } from '../../../src/core/keys/bearer-token.ts'
import { openIdentity } from '../../../src/identity/identity.ts'
import type { Database } from '../../../src/postgres/database.ts'

export const CONFIG = { signup: 'open', sign_in: { oidc: [] }, trial_credit: 500_000_000n } as const

export class BrowserSession {
  token: string | null = null
  address: string
  origin = 'http://localhost:8080'
  now = () => Date.now()
  readonly #database: Database
  readonly #services: PeopleServices

  constructor(
    database: Database,
    config: ReturnType<PeopleServices['config']> = CONFIG as never,
    address = '192.0.2.1',
    identity = openIdentity(),
  ) {
    this.#database = database
    this.#services = { config: () => config, publicUrl: 'https://gateway.example', hasMail: false, identity }
    this.address = address
  }

  async caller(): Promise<Caller> {
    const signedIn = this.token === null ? null : await this.#database.sessions.find(hashToken(this.token))
    return signedIn === null ? VISITOR : userCaller(signedIn)
  }

  /** Runs the act of an operation among `acts`. */
  async run<O extends Operation>(
    acts: readonly { readonly operation: Operation }[],
    operation: O,
    input: object = {},
  ) {
    const act = findImplementation<object, O>(acts, operation)
    const visit = {
      userAgent: 'test',
      address: this.address,
      origin: this.origin,
      token: this.token,
      form: null,
      setToken: (token: string | null) => {
        this.token = token
      },
    }
    const options = { database: this.#database, services: this.#services, visit, now: this.now() }
    return runImplementation(act, input, { ...options, caller: await this.caller() })
  }
}
