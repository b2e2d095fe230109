/** Notes of the operators, as customers read them. */
import type { ServiceStatus } from '../../../../schemas/status.ts'
import { t } from '../../i18n.ts'
import { Panel, StatusBadge, type Statuses } from '../../ui/states.tsx'
import { Code, Time } from '../../ui/text.tsx'

type Note = ServiceStatus['notes'][number]

export const nameSeverities = (): Statuses<Note['severity']> => ({
  info: ['accent', t('Information')],
  maintenance: ['accent', t('Maintenance')],
  degraded: ['warn', t('Degraded')],
  outage: ['bad', t('Outage')],
})

const NoteModels = ({ models }: Pick<Note, 'models'>) =>
  models === null ? (
    t('All models')
  ) : (
    <span className="inline-flex flex-wrap gap-x-2">
      {models.map((model) => (
        <Code key={model}>{model}</Code>
      ))}
    </span>
  )

const Period = ({ begins_at, ends_at, resolved_at }: Note) => (
  <span>
    <Time at={begins_at} />
    {resolved_at !== null && (
      <>
        {' – '}
        <Time at={resolved_at} />
      </>
    )}
    {resolved_at === null && ends_at !== null && (
      <>
        {' – '}
        <Time at={ends_at} /> {t('(planned)')}
      </>
    )}
  </span>
)

/** The severity of a note, its models, and when it holds. */
export const NoteHead = (note: Note) => (
  <span className="flex flex-wrap items-center gap-x-3 gap-y-1 text-quiet text-sm">
    <StatusBadge statuses={nameSeverities()} status={note.severity} />
    <NoteModels models={note.models} />
    <Period {...note} />
  </span>
)

const NoteText = (note: Note) => (
  <li className="flex flex-col gap-2 px-4 py-3">
    <NoteHead {...note} />
    <p className="whitespace-pre-wrap break-words">{note.text}</p>
    {note.updates.length > 0 && (
      <ol className="flex flex-col gap-1.5 border-line border-l-2 pl-3">
        {note.updates.map(({ at, text }) => (
          <li key={at}>
            <span className="text-quiet text-xs">
              <Time at={at} />
            </span>
            <p className="whitespace-pre-wrap break-words">{text}</p>
          </li>
        ))}
      </ol>
    )}
  </li>
)

/** Sorts notes into those that hold now, planned ones, and past ones. */
function sortNotes(notes: readonly Note[], now: number) {
  const isPast = ({ resolved_at, ends_at }: Note) =>
    resolved_at !== null || (ends_at !== null && Date.parse(ends_at) <= now)
  const isPlanned = ({ begins_at }: Note) => Date.parse(begins_at) > now
  const open = notes.filter((note) => !isPast(note))
  return {
    now: open.filter((note) => !isPlanned(note)),
    planned: open.filter(isPlanned),
    past: notes.filter(isPast),
  }
}

const NoteList = ({ title, notes }: { readonly title: string; readonly notes: readonly Note[] }) =>
  notes.length > 0 && (
    <Panel title={title}>
      <ul className="divide-y divide-line">
        {notes.map((note) => (
          <NoteText key={note.id} {...note} />
        ))}
      </ul>
    </Panel>
  )

interface NotesProps {
  readonly notes: readonly Note[]
  readonly part: 'now' | 'past'
}

export function Notes({ notes, part }: NotesProps) {
  const { now, planned, past } = sortNotes(notes, Date.now())
  if (part === 'past') return <NoteList title={t('Past notes')} notes={past} />
  return (
    <>
      <NoteList title={t('Notes')} notes={now} />
      <NoteList title={t('Planned')} notes={planned} />
    </>
  )
}
