/** Operations of saved views. */

import { deleteView, listViews, saveView } from '../../../schemas/management/people/saved-views.ts'
import type { SavedViews } from '../../../src/postgres/people/repository.ts'
import { implement } from '../operation.ts'
import { wholeList } from '../page.ts'
import { signedInOf } from './sessions.ts'

async function viewsOf(database: { readonly savedViews: SavedViews }, userId: string, page: string) {
  const views = await database.savedViews.list(userId, page)
  return wholeList(views.map(({ name, query }) => ({ name, query })))
}

export const savedViewOperations = [
  implement(listViews, (context, { page }) => viewsOf(context.database, signedInOf(context).user.id, page)),
  implement(saveView, (context, view) => {
    const { id } = signedInOf(context).user
    return context.write(async (database) => {
      await database.savedViews.save(id, view)
      return viewsOf(database, id, view.page)
    })
  }),
  implement(deleteView, (context, view) => {
    const { id } = signedInOf(context).user
    return context.write(async (database) => {
      await database.savedViews.delete(id, view)
      return viewsOf(database, id, view.page)
    })
  }),
]
