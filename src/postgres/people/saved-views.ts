/** Filters of a page of the console under a name. */
import { addWithin } from '../collections.ts'
import type { Sql } from '../connection.ts'

export interface SavedView {
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
 * @throws Refusal `limit_reached`
 */
export const saveView = (sql: Sql, userId: string, { page, name, query }: SavedView): Promise<void> =>
  addWithin(
    sql,
    {
      limit: 'saved_views_per_page',
      ownerId: `${userId} ${page}`,
      entries: (present) =>
        present`SELECT FROM saved_views WHERE user_id = ${userId} AND page = ${page} AND name <> ${name}`,
    },
    async (transaction) => {
      await transaction`
        INSERT INTO saved_views (user_id, page, name, query) VALUES (${userId}, ${page}, ${name}, ${query})
        ON CONFLICT (user_id, page, name) DO UPDATE SET query = excluded.query`
    },
  )

export async function deleteSavedView(
  sql: Sql,
  userId: string,
  { page, name }: Omit<SavedView, 'query'>,
): Promise<void> {
  await sql`DELETE FROM saved_views WHERE user_id = ${userId} AND page = ${page} AND name = ${name}`
}
