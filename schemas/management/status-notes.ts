/** Operations of the notes that operators post on the status page. */
import { z } from 'zod'
import { NOTE_SEVERITIES, statusNoteFields } from '../status.ts'
import { instantText, operation, pageInput, toPageSchema } from './operation.ts'

const MAX_TEXT_CHARS = 2_000
const MAX_MODELS = 1_000

const note = z.object({
  ...statusNoteFields,
  created_by: z.string(),
  created_at: instantText,
})
const answer = { name: 'StatusNote', schema: note }
const text = z.string().trim().min(1, 'Write what customers should know').max(MAX_TEXT_CHARS)
const severity = z.enum(NOTE_SEVERITIES)
const time = z.iso.datetime({ offset: true })
const ofOperators = { scope: 'admin', allows: 'operators' } as const

export const listStatusNotes = operation('listStatusNotes', {
  summary: 'List the notes of the status page, the newest first.',
  input: z.object({
    open: z.enum(['true', 'false']).default('true').describe('Only those that are not resolved.'),
    ...pageInput,
  }),
  answer: { name: 'StatusNoteList', schema: toPageSchema(note) },
  scope: 'read',
  allows: 'operators',
  commands: [{ words: 'status list', columns: 'id severity text models begins_at ends_at resolved_at' }],
})

export const postStatusNote = operation('postStatusNote', {
  ...ofOperators,
  summary: 'Post a note on the status page, where everybody reads it.',
  input: z.object({
    text: text.describe('What customers should know.'),
    severity: severity.default('info').describe('How bad it is.'),
    models: z
      .array(z.string().min(1))
      .min(1)
      .max(MAX_MODELS)
      .nullable()
      .default(null)
      .describe('Models that it is about. Default: all.'),
    begins_at: time.optional().describe('Default: now. Planned work begins later.'),
    ends_at: time.nullable().default(null).describe('The planned end. The note counts as over then.'),
  }),
  answer,
  isIdempotent: true,
  commands: [{ words: 'status post', example: '--severity degraded --models sonata-large' }],
})

export const updateStatusNote = operation('updateStatusNote', {
  ...ofOperators,
  summary: 'Add an update to a note of the status page.',
  input: z.object({
    id: z.string(),
    text: text.describe('What is new.'),
    severity: severity.optional().describe('How bad it is now. Default: as before.'),
  }),
  answer,
  isIdempotent: true,
  commands: [{ words: 'status update' }],
})

export const resolveStatusNote = operation('resolveStatusNote', {
  ...ofOperators,
  summary: 'End a note of the status page. It stays there as a past one for 30 days.',
  input: z.object({
    id: z.string(),
    text: z.string().trim().max(MAX_TEXT_CHARS).default('').describe('The last update, if there is one.'),
  }),
  answer,
  isIdempotent: true,
  commands: [{ words: 'status resolve' }],
})
