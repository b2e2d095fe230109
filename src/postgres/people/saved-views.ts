/** Filters of a page of the console under a name. */
import { Refusal } from '../billing/refusal.ts'
import type { Sql } from '../connection.ts'

/** Of one user and page. */
const MAX_VIEWS = 50

interface SavedView {
  readonly page: string
  readonly name: string
  /** Search parameters of the page. */
  readonly query: string
}

export const listSavedViews = (sql: Sql, userId: string, page: string): Promise<SavedView[]> => sql<
  SavedView[]
>`
  SELECT page, name, query FROM saved_views WHERE user_id = ${userId} AND page = ${page} ORDER BY name`

/**
 * Saves a view; one of the same name is replaced.
 * @throws Refusal `too_many_views`
 */
export async function saveView(sql: Sql, userId: string, { page, name, query }: SavedView): Promise<void> {
  await sql`
    INSERT INTO saved_views (user_id, page, name, query) VALUES (${userId}, ${page}, ${name}, ${query})
    ON CONFLICT (user_id, page, name) DO UPDATE SET query = excluded.query`
  const [{ count }] = await sql<[{ count: bigint }]>`
    SELECT count(*) FROM saved_views WHERE user_id = ${userId} AND page = ${page}`
  if (count > MAX_VIEWS)
    throw new Refusal('too_many_views', `You have ${MAX_VIEWS} saved views of this page: delete one first`)
}

export async function deleteSavedView(
  sql: Sql,
  userId: string,
  { page, name }: Omit<SavedView, 'query'>,
): Promise<void> {
  await sql`DELETE FROM saved_views WHERE user_id = ${userId} AND page = ${page} AND name = ${name}`
}
