/** Acts of saved views. */
import { deleteView, listViews, saveView } from '../../../schemas/management/people/saved-views.ts'
import type { Repositories } from '../../../src/postgres/database.ts'
import { implement } from '../act.ts'
import { wholeList } from '../page.ts'
import { signedInOf } from './sessions.ts'

async function viewsOf(database: Pick<Repositories, 'listSavedViews'>, userId: string, page: string) {
  const views = await database.listSavedViews(userId, page)
  return wholeList(views.map(({ name, query }) => ({ name, query })))
}

export const savedViewActs = [
  implement(listViews, (context, { page }) => viewsOf(context.database, signedInOf(context).user.id, page)),
  implement(saveView, (context, view) => {
    const { id } = signedInOf(context).user
    return context.write(async (database) => {
      await database.saveView(id, view)
      return viewsOf(database, id, view.page)
    })
  }),
  implement(deleteView, (context, view) => {
    const { id } = signedInOf(context).user
    return context.write(async (database) => {
      await database.deleteSavedView(id, view)
      return viewsOf(database, id, view.page)
    })
  }),
]
