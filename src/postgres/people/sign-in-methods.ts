/** Ways in which a user signs in, as PostgreSQL keeps them: password, passkeys, persons at providers. */
import type { Passkey, SignInMethods, User } from '../../../schemas/accounts/people.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import { newId } from '../../core/keys/ids.ts'
import { Refusal } from '../billing/refusal.ts'
import { addWithin } from '../collections.ts'
import type { Queryable } from '../connection.ts'
import { isUniqueViolation } from '../errors.ts'
import { voidBegun } from './tickets.ts'
import { toUser, type UserRow } from './users.ts'

type PasskeyRow = SnakeCase<Omit<Passkey, 'counter'>> & { counter: bigint }

const toPasskey = (row: PasskeyRow): Passkey => ({
  id: row.id,
  userId: row.user_id,
  name: row.name,
  credentialId: row.credential_id,
  publicKey: row.public_key,
  counter: Number(row.counter),
  transports: row.transports,
  createdAt: row.created_at,
  lastUsedAt: row.last_used_at,
})

/** The user with an email, with what checks their password; disabled users too. */
export interface PasswordSignIn {
  readonly user: User
  readonly passwordHash: string | null
  readonly hasTotp: boolean
}

/** Finds what a sign-in with a password needs, by the normalized email; null without such a user. */
export async function findPasswordSignIn(sql: Queryable, email: string): Promise<PasswordSignIn | null> {
  const [row] = await sql<(UserRow & { password_hash: string | null; has_totp: boolean })[]>`
    SELECT u.*, p.password_hash, t.confirmed_at IS NOT NULL AS has_totp
    FROM users AS u LEFT JOIN passwords AS p ON p.user_id = u.id LEFT JOIN totps AS t ON t.user_id = u.id
    WHERE lower(u.email) = ${email}`
  if (row === undefined) return null
  return { user: toUser(row), passwordHash: row.password_hash, hasTotp: row.has_totp }
}

/** Sets the hash of the password, and replaces a former one. What was begun before it is void. */
export async function setPassword(sql: Queryable, userId: string, passwordHash: string): Promise<void> {
  await sql`
    INSERT INTO passwords (user_id, password_hash) VALUES (${userId}, ${passwordHash})
    ON CONFLICT (user_id) DO UPDATE SET password_hash = EXCLUDED.password_hash, created_at = now()`
  await voidBegun(sql, userId)
}

export async function listSignInMethods(sql: Queryable, userId: string): Promise<SignInMethods> {
  const [row] = await sql<
    [{ password_set_at: Date | null; totp_confirmed_at: Date | null; recovery_codes: bigint }]
  >`
    SELECT (SELECT created_at FROM passwords WHERE user_id = ${userId}) AS password_set_at,
      (SELECT confirmed_at FROM totps WHERE user_id = ${userId}) AS totp_confirmed_at,
      (SELECT count(*) FROM recovery_codes WHERE user_id = ${userId}) AS recovery_codes`
  const passkeys = await sql<PasskeyRow[]>`
    SELECT * FROM passkeys WHERE user_id = ${userId} ORDER BY id`
  const identities = await sql<{ provider: string; created_at: Date }[]>`
    SELECT provider, created_at FROM identities WHERE user_id = ${userId} ORDER BY provider`
  return {
    passwordSetAt: row.password_set_at,
    totpConfirmedAt: row.totp_confirmed_at,
    recoveryCodes: Number(row.recovery_codes),
    passkeys: passkeys.map(toPasskey),
    identities: identities.map(({ provider, created_at }) => ({ provider, createdAt: created_at })),
  }
}

export type NewPasskey = Pick<
  Passkey,
  'userId' | 'name' | 'credentialId' | 'publicKey' | 'counter' | 'transports'
>

/** @throws Refusal `passkey_known`, `limit_reached` */
export const addPasskey = (sql: Queryable, passkey: NewPasskey): Promise<Passkey> =>
  addWithin(
    sql,
    {
      limit: 'passkeys_per_user',
      ownerId: passkey.userId,
      entries: (present) => present`SELECT FROM passkeys WHERE user_id = ${passkey.userId}`,
    },
    (transaction) => insertPasskey(transaction, passkey),
  )

async function insertPasskey(sql: Queryable, passkey: NewPasskey): Promise<Passkey> {
  const { userId, name, credentialId, publicKey, counter, transports } = passkey
  try {
    const [row] = await sql<[PasskeyRow]>`
      INSERT INTO passkeys (id, user_id, name, credential_id, public_key, counter, transports)
      VALUES (${newId('pky')}, ${userId}, ${name}, ${credentialId}, ${Buffer.from(publicKey)}, ${BigInt(counter)},
        ${transports as string[]}::text[])
      RETURNING *`
    return toPasskey(row)
  } catch (error) {
    if (isUniqueViolation(error)) throw new Refusal('passkey_known', 'This passkey was added before')
    throw error
  }
}

/** Finds the passkey with this credential id, of a user who is not disabled. */
export async function findPasskey(sql: Queryable, credentialId: string): Promise<Passkey | null> {
  const [row] = await sql<PasskeyRow[]>`
    SELECT p.* FROM passkeys AS p JOIN users AS u ON u.id = p.user_id AND u.enabled
    WHERE p.credential_id = ${credentialId}`
  return row === undefined ? null : toPasskey(row)
}

/** Takes the next counter of a passkey. Returns false where another use was faster or the passkey is gone. */
export async function advancePasskey(
  sql: Queryable,
  { id, counter }: Passkey,
  next: number,
): Promise<boolean> {
  const rows = await sql`
    UPDATE passkeys SET counter = ${BigInt(next)}, last_used_at = now()
    WHERE id = ${id} AND counter = ${BigInt(counter)} RETURNING id`
  return rows.length > 0
}

const passkeyNotFound = (id: string): Refusal => new Refusal('passkey_not_found', `There is no passkey ${id}`)

/** @throws Refusal `passkey_not_found` */
export async function renamePasskey(
  sql: Queryable,
  userId: string,
  id: string,
  name: string,
): Promise<Passkey> {
  const [row] = await sql<PasskeyRow[]>`
    UPDATE passkeys SET name = ${name} WHERE id = ${id} AND user_id = ${userId} RETURNING *`
  if (row === undefined) throw passkeyNotFound(id)
  return toPasskey(row)
}

/** @throws Refusal `passkey_not_found`, `last_way` */
export async function removePasskey(sql: Queryable, userId: string, id: string): Promise<void> {
  const rows = await sql`DELETE FROM passkeys WHERE id = ${id} AND user_id = ${userId} RETURNING id`
  if (rows.length === 0) throw passkeyNotFound(id)
  await assertHasWay(sql, userId)
}

/** Finds the user who is this person at a provider; null without one. Disabled users too. */
export async function findIdentity(sql: Queryable, provider: string, subject: string): Promise<User | null> {
  const [row] = await sql<UserRow[]>`
    SELECT u.* FROM identities AS i JOIN users AS u ON u.id = i.user_id
    WHERE i.provider = ${provider} AND i.subject = ${subject}`
  return row === undefined ? null : toUser(row)
}

/** @throws Refusal `identity_taken` */
export async function addIdentity(
  sql: Queryable,
  userId: string,
  provider: string,
  subject: string,
): Promise<void> {
  try {
    await sql`INSERT INTO identities (provider, subject, user_id) VALUES (${provider}, ${subject}, ${userId})`
  } catch (error) {
    if (isUniqueViolation(error))
      throw new Refusal('identity_taken', `This person at ${provider}, or this user, is connected already`)
    throw error
  }
}

/** @throws Refusal `identity_not_found`, `last_way` */
export async function removeIdentity(sql: Queryable, userId: string, provider: string): Promise<void> {
  const rows = await sql`
    DELETE FROM identities WHERE user_id = ${userId} AND provider = ${provider} RETURNING provider`
  if (rows.length === 0) throw new Refusal('identity_not_found', `You are not connected with ${provider}`)
  await assertHasWay(sql, userId)
}

/** Locks the user, so that of two ways removed at the same time one stays. @throws Refusal `last_way` */
async function assertHasWay(sql: Queryable, userId: string): Promise<void> {
  await sql`SELECT FROM users WHERE id = ${userId} FOR NO KEY UPDATE`
  if (!(await hasWay(sql, userId)))
    throw new Refusal('last_way', 'This is your last way to sign in: add another one first')
}

/** Returns whether the user has a way to sign in, links left out. */
export async function hasWay(sql: Queryable, userId: string): Promise<boolean> {
  const [row] = await sql<[{ has: boolean }]>`
    SELECT EXISTS (SELECT FROM passwords WHERE user_id = ${userId})
      OR EXISTS (SELECT FROM passkeys WHERE user_id = ${userId})
      OR EXISTS (SELECT FROM identities WHERE user_id = ${userId}) AS has`
  return row.has
}
