/** Operations of saved views: filters of a page of the console under a name. */
import { z } from 'zod'
import { MAX_NAME_CHARS } from '../../accounts/account.ts'
import { operation, toListSchema } from '../operation.ts'

const page = z.enum(['calls', 'all-calls', 'usage', 'tasks'])
const name = z.string().trim().min(1).max(MAX_NAME_CHARS)
const query = z.string().max(2_000).describe('Search parameters of the page.')

const answer = {
  name: 'SavedViews',
  schema: toListSchema(z.object({ name, query })),
}

export const listViews = operation('listViews', {
  summary: 'List your saved views of a page.',
  input: z.object({ page }),
  answer,
  scope: 'read',
  allows: 'signed-in',
})

export const saveView = operation('saveView', {
  summary: 'Save a view of a page. A view of the same name is replaced.',
  input: z.object({ page, name, query }),
  answer,
  scope: 'admin',
  allows: 'signed-in',
})

export const deleteView = operation('deleteView', {
  summary: 'Delete a saved view.',
  input: z.object({ page, name }),
  answer,
  scope: 'admin',
  allows: 'signed-in',
})
