/** Operations of the notes on the status page. */
import { Failure } from '../../../schemas/failure.ts'
import {
  listStatusNotes,
  postStatusNote,
  resolveStatusNote,
  updateStatusNote,
} from '../../../schemas/management/status-notes.ts'
import type { Catalog } from '../../../src/core/routing/catalog.ts'
import { statusNoteShape } from '../../status.ts'
import { implementWith } from '../operation.ts'
import { readPage, toPage } from '../page.ts'

const implement = implementWith<{ readonly catalog: () => Catalog }>()

/** Returns the ids of models. @throws Failure `invalid_request` for an unknown one */
const findModels = (catalog: Catalog, names: readonly string[]): string[] => [
  ...new Set(
    names.map((name) => {
      const model = catalog.resolve(name)
      if (model === null) throw new Failure('invalid_request', `models: there is no model ${name}.`)
      return model.id
    }),
  ),
]

const toDate = (text: string | null | undefined): Date | null => (text == null ? null : new Date(text))

export const statusNoteOperations = [
  implement(listStatusNotes, async ({ database }, input) => {
    const { after: before, limit } = readPage(input)
    const isOpen = input.open === 'true'
    const notes = await database.statusNotes.list({ isOpen, since: null, before, limit })
    return toPage(notes.map(statusNoteShape), input)
  }),
  implement(postStatusNote, async ({ write, now }, input, { catalog }) => {
    const { severity, text } = input
    const models = input.models && findModels(catalog(), input.models)
    const [beginsAt, endsAt] = [toDate(input.begins_at), toDate(input.ends_at)]
    if (endsAt !== null && endsAt.getTime() <= (beginsAt?.getTime() ?? now))
      throw new Failure('invalid_request', 'ends_at: it must be after the note begins.')
    const note = { severity, text, models, beginsAt, endsAt }
    return statusNoteShape(await write((writing) => writing.statusNotes.post(note)))
  }),
  implement(updateStatusNote, async ({ write }, { id, text, severity = null }) => {
    const update = { text, severity, isResolved: false }
    return statusNoteShape(await write((writing) => writing.statusNotes.update(id, update)))
  }),
  implement(resolveStatusNote, async ({ write }, { id, text }) => {
    const update = { text, severity: null, isResolved: true }
    return statusNoteShape(await write((writing) => writing.statusNotes.update(id, update)))
  }),
]
