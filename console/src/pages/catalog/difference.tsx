/** How a proposed configuration differs from the file. */
import type { AnswerOf } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Badge, EmptyState, Panel } from '../../ui/states.tsx'
import { Code, SCROLLED_BY_KEYS } from '../../ui/text.tsx'

export type Checked = AnswerOf<'checkConfiguration'>
type Entries = Checked['difference']['models']

export const isEmpty = ({ models, channels, sections }: Checked['difference']): boolean =>
  sections.length === 0 &&
  [models, channels].every(
    ({ added, removed, changed }) => added.length + removed.length + changed.length === 0,
  )

function Changes({ title, entries }: { readonly title: string; readonly entries: Entries }) {
  const { added, removed, changed } = entries
  if (added.length + removed.length + changed.length === 0) return null
  return (
    <section className="px-4 py-3">
      <h3 className="pb-1 font-medium">{title}</h3>
      <ul className="flex flex-col gap-1 text-sm">
        {added.map((id) => (
          <li key={`+${id}`} className="flex items-center gap-2">
            <Badge tone="good">{t('Added')}</Badge> <Code>{id}</Code>
          </li>
        ))}
        {removed.map((id) => (
          <li key={`-${id}`} className="flex items-center gap-2">
            <Badge tone="bad">{t('Removed')}</Badge> <Code>{id}</Code>
          </li>
        ))}
        {changed.map(({ id, fields }) => (
          <li key={id}>
            <div className="flex items-center gap-2">
              <Badge tone="warn">{t('Changed')}</Badge> <Code>{id}</Code>
            </div>
            <dl className="mt-1 ml-4 grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 break-all font-mono text-xs">
              {fields.map(({ name, before, after }) => (
                <div key={name} className="contents">
                  <dt className="text-quiet">{name}</dt>
                  <dd>
                    <del className="text-bad">{before ?? '–'}</del>{' '}
                    <ins className="text-good">{after ?? '–'}</ins>
                  </dd>
                </div>
              ))}
            </dl>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** The changed entries, field by field. */
export const Difference = ({ difference }: { readonly difference: Checked['difference'] }) => (
  <div className="divide-y divide-line whitespace-normal">
    <Changes title={t('Models')} entries={difference.models} />
    <Changes title={t('Channels')} entries={difference.channels} />
    {difference.sections.length > 0 && (
      <section className="px-4 py-3">
        <h3 className="pb-1 font-medium">{t('Other parts')}</h3>
        <p className="font-mono text-xs">{difference.sections.join(', ')}</p>
      </section>
    )}
  </div>
)

const SIGNS = { same: ' ', removed: '−', added: '+' } as const
const LINE_TONES = { same: '', removed: 'bg-bad-wash text-bad', added: 'bg-good-wash text-good' } as const

/** The lines that change. */
const Lines = ({ lines }: { readonly lines: Checked['lines'] }) => (
  <pre {...SCROLLED_BY_KEYS} className="max-h-96 overflow-auto font-mono text-xs leading-relaxed">
    {lines.map(({ kind, line, text }) => (
      <div key={`${kind} ${line}`} className={`px-4 ${LINE_TONES[kind]}`}>
        {SIGNS[kind]} {String(line).padStart(4)} {text}
      </div>
    ))}
  </pre>
)

export const Differences = ({ checked: { difference, lines } }: { readonly checked: Checked }) => (
  <Panel title={t('Differences from the file')}>
    {isEmpty(difference) && lines.length === 0 ? (
      <EmptyState title={t('Nothing changes.')} />
    ) : (
      <>
        <Difference difference={difference} />
        <div className="border-line border-t py-2">
          <Lines lines={lines} />
        </div>
      </>
    )}
  </Panel>
)
