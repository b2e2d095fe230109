/** Operations of saved views. */

import { deleteView, listViews, saveView } from '../../../schemas/management/people/saved-views.ts'
import type { SavedViews } from '../../../src/postgres/people/repository.ts'
import { implement } from '../operation.ts'
import { toWholeList } from '../page.ts'
import { requireSignedIn } from './sessions.ts'

async function readViews(database: { readonly savedViews: SavedViews }, userId: string, page: string) {
  const views = await database.savedViews.list(userId, page)
  return toWholeList(views.map(({ name, query }) => ({ name, query })))
}

export const savedViewOperations = [
  implement(listViews, (context, { page }) =>
    readViews(context.database, requireSignedIn(context).user.id, page),
  ),
  implement(saveView, (context, view) => {
    const { id } = requireSignedIn(context).user
    return context.write(async (database) => {
      await database.savedViews.save(id, view)
      return readViews(database, id, view.page)
    })
  }),
  implement(deleteView, (context, view) => {
    const { id } = requireSignedIn(context).user
    return context.write(async (database) => {
      await database.savedViews.delete(id, view)
      return readViews(database, id, view.page)
    })
  }),
]
