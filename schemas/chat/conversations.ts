/** The client contract of conversations that an upstream of the responses protocol keeps. See docs/api-rules.md, "Conversations". */
import { z } from 'zod'
import { responsesItem } from './responses.ts'

/** As the public interface has it. */
const MAX_ITEMS = 20

const items = z.array(responsesItem).max(MAX_ITEMS)
const metadata = z
  .record(z.string().max(64), z.string().max(512))
  .nullish()
  .describe('At most 16 names of 64 characters with texts of 512.')

export const newConversation = z.looseObject({
  model: z
    .string()
    .min(1)
    .nullish()
    .describe(
      'Id or alias of a model that will be used: the conversation is kept at a channel that serves it. Not passed on.',
    ),
  items: items.nullish().describe('Messages and items that it begins with.'),
  metadata,
})

export const changedConversation = z.looseObject({ metadata })

export const newItems = z.looseObject({ items: items.min(1) })
