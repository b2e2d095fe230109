/** Notes that operators post on the status page. */
import type { z } from 'zod'
import type { NOTE_SEVERITIES, statusNoteFields } from '../../../schemas/status.ts'
import { fromRow, type SnakeCase } from '../../core/json/snake-case.ts'
import { newId } from '../../core/keys/ids.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable } from '../connection.ts'
import { printJson } from '../json.ts'

type Severity = (typeof NOTE_SEVERITIES)[number]

export interface StatusNote {
  readonly id: string
  readonly severity: Severity
  readonly text: string
  /** Null: all. */
  readonly models: string[] | null
  readonly beginsAt: Date
  readonly endsAt: Date | null
  readonly resolvedAt: Date | null
  readonly updates: z.output<typeof statusNoteFields.updates>
  readonly createdBy: string
  readonly createdAt: Date
}

export interface NewStatusNote {
  readonly severity: Severity
  readonly text: string
  readonly models: readonly string[] | null
  /** Null: now. */
  readonly beginsAt: Date | null
  readonly endsAt: Date | null
}

/** What an update changes. Null stays as it is; an empty text adds no update. */
export interface StatusUpdate {
  readonly text: string
  readonly severity: Severity | null
  readonly isResolved: boolean
}

type NoteRow = SnakeCase<StatusNote>

const columns = (sql: Queryable) =>
  sql`id, severity, text, models, begins_at, ends_at, resolved_at, updates, created_by, created_at`

export interface StatusNotesQuery {
  /** Those that are not resolved. */
  readonly isOpen: boolean
  /** Leaves out those that were over earlier; null: none. */
  readonly since: Date | null
  /** The id before which the list begins; null: at the newest. */
  readonly before: string | null
  readonly limit: number
}

/** Lists the notes, the newest first. */
export async function listStatusNotes(
  sql: Queryable,
  { isOpen, since, before, limit }: StatusNotesQuery,
): Promise<StatusNote[]> {
  const rows = await sql<NoteRow[]>`
    SELECT ${columns(sql)} FROM status_notes
    WHERE true
      ${isOpen ? sql`AND resolved_at IS NULL` : sql``}
      ${since === null ? sql`` : sql`AND coalesce(resolved_at, ends_at, 'infinity') >= ${since}`}
      ${before === null ? sql`` : sql`AND id < ${before}`}
    ORDER BY id DESC LIMIT ${limit}`
  return rows.map(fromRow<StatusNote>)
}

export async function postStatusNote(
  sql: Queryable,
  { severity, text, models, beginsAt, endsAt }: NewStatusNote,
): Promise<StatusNote> {
  const [row] = await sql<NoteRow[]>`
    INSERT INTO status_notes (id, severity, text, models, begins_at, ends_at, created_by)
    VALUES (
      ${newId('note')}, ${severity}, ${text}, ${models as string[] | null}, coalesce(${beginsAt}, now()), ${endsAt},
      audit_actor())
    RETURNING ${columns(sql)}`
  const note = fromRow<StatusNote>(row!)
  await recordOperation(sql, {
    action: 'status_note.post',
    accountId: null,
    subjectId: note.id,
    after: { severity, text, models, begins_at: note.beginsAt, ends_at: endsAt },
  })
  return note
}

/**
 * Adds an update to a note, or ends it.
 * @throws Refusal `status_note_not_found`, `status_note_resolved`
 */
export async function updateStatusNote(
  sql: Queryable,
  id: string,
  { text, severity, isResolved }: StatusUpdate,
): Promise<StatusNote> {
  const added = text === '' ? [] : [{ at: new Date().toISOString(), text }]
  const [row] = await sql<NoteRow[]>`
    UPDATE status_notes SET
      severity = coalesce(${severity}, severity), updates = updates || ${printJson(added)}::text::jsonb,
      resolved_at = CASE WHEN ${isResolved} THEN now() END
    WHERE id = ${id} AND resolved_at IS NULL RETURNING ${columns(sql)}`
  if (row === undefined) {
    const [found] = await sql`SELECT FROM status_notes WHERE id = ${id}`
    if (found === undefined) throw new Refusal('status_note_not_found', `There is no note ${id}`)
    throw new Refusal('status_note_resolved', `The note ${id} is resolved: post a new one`)
  }
  await recordOperation(sql, {
    action: isResolved ? 'status_note.resolve' : 'status_note.update',
    accountId: null,
    subjectId: id,
    after: { severity: row.severity, text },
  })
  return fromRow<StatusNote>(row)
}
