/** The operator that an installation is born with, and the link that signs them in. */
import { generateToken, hashToken } from '../../core/keys/bearer-token.ts'
import type { Accounts } from '../../postgres/accounts/repository.ts'
import { Refusal } from '../../postgres/billing/refusal.ts'
import type { Sessions, Users } from '../../postgres/people/repository.ts'
import { FIRST_ACCOUNT_NAME } from './first-account.ts'

const FIRST_OPERATOR_EMAIL = 'operator@localhost'
const LINK_MINUTES = 15

interface FirstOperatorDatabase {
  readonly accounts: Accounts
  readonly sessions: Sessions
  readonly users: Users
}

/**
 * Returns the token of a link that signs in the first operator: makes the user where there is none at all, who owns the
 * first account where that is there. Null once the operator has signed in, and where another service that starts at the
 * same time has made the user: that one has the link.
 */
export async function provideSignInToken(database: FirstOperatorDatabase): Promise<string | null> {
  const users = await database.users.list({ limit: 2 })
  const operator = users[0] ?? (await createOperator(database))
  if (operator === null || users.length > 1 || (await database.sessions.hasSignedIn(operator.id))) return null
  const token = generateToken()
  await database.sessions.createLink({
    tokenHash: hashToken(token),
    userId: operator.id,
    minutes: LINK_MINUTES,
  })
  return token
}

async function createOperator(database: FirstOperatorDatabase) {
  const accounts = await database.accounts.list()
  const first = accounts.find(({ account }) => account.name === FIRST_ACCOUNT_NAME)
  const user = {
    email: FIRST_OPERATOR_EMAIL,
    name: 'Operator',
    installationRole: 'operator',
    credit: 0n,
    ...(first && { accountId: first.account.id }),
  } as const
  return database.users.create(user).catch((error) => {
    if (error instanceof Refusal && error.code === 'email_taken') return null
    throw error
  })
}
