/** Operations that read the pages of a knowledge base, as its readers see them. */
import { z } from 'zod'
import { queryText, searchPage } from '../../knowledge/query.ts'
import { wikiEntry, wikiPage } from '../../knowledge/wiki.ts'
import { instantText, operation, pageInput, toPageSchema } from '../operation.ts'

const allows = ['owner', 'admin'] as const
const subject = {
  id: z.string().describe('The knowledge base.'),
  account_id: z.string().describe('The account that reads it.'),
}

const listed = wikiEntry.extend({
  path: z.string().describe('Of its file, below the imported folder.'),
  updated_at: instantText,
})

export const listPages = operation('listPages', {
  summary: 'List the pages of a knowledge base by path.',
  input: z.object({ ...subject, ...pageInput }),
  answer: { name: 'KnowledgePageList', schema: toPageSchema(listed) },
  scope: 'read',
  allows,
})

export const showPage = operation('showPage', {
  summary: 'Show a page with the pages that link to it.',
  input: z.object({ ...subject, page_id: z.string() }),
  answer: {
    name: 'KnowledgePage',
    schema: wikiPage.extend({ backlinks: z.array(wikiEntry.pick({ id: true, title: true })) }),
  },
  scope: 'read',
  allows,
})

export const searchPages = operation('searchPages', {
  summary: 'Search a knowledge base as its readers do.',
  input: z.object({
    ...subject,
    q: queryText,
    limit: z.coerce.number().int().min(1).max(50).default(20),
    offset: z.coerce.number().int().min(0).max(10_000).default(0),
  }),
  answer: { name: 'KnowledgeSearch', schema: searchPage },
  scope: 'read',
  allows,
})
