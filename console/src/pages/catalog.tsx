/** The configuration file, with models, prices and channels: check it, compare it, apply it. */

import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useId, useRef, useState } from 'react'
import { type AnswerOf, request } from '../api/client.ts'
import { useGet } from '../api/read.ts'
import { useSession } from '../api/session.ts'
import { t } from '../i18n.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { useFields } from '../ui/fields.ts'
import { Actions } from '../ui/form.tsx'
import { Badge, EmptyState, ErrorState, FormError, PageHeader, Panel, QueryState } from '../ui/states.tsx'
import { Code } from '../ui/text.tsx'

type Checked = AnswerOf<'checkConfiguration'>
type Entries = Checked['difference']['models']
type Problem = Checked['problems'][number]

const ROWS = 28

const isEmpty = ({ models, channels, sections }: Checked['difference']): boolean =>
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

function Difference({ difference }: { readonly difference: Checked['difference'] }) {
  return (
    <Panel title={t('Differences from the file')}>
      {isEmpty(difference) ? (
        <EmptyState title={t('Nothing changes.')} />
      ) : (
        <div className="divide-y divide-line">
          <Changes title={t('Models')} entries={difference.models} />
          <Changes title={t('Channels')} entries={difference.channels} />
          {difference.sections.length > 0 && (
            <section className="px-4 py-3">
              <h3 className="pb-1 font-medium">{t('Other parts')}</h3>
              <p className="font-mono text-xs">{difference.sections.join(', ')}</p>
            </section>
          )}
        </div>
      )}
    </Panel>
  )
}

interface ProblemsProps {
  readonly title: string
  readonly problems: readonly Problem[]
  onOpen(problem: Problem): void
}

const Problems = ({ title, problems, onOpen }: ProblemsProps) =>
  problems.length > 0 && (
    <Panel title={title}>
      <ul className="divide-y divide-line">
        {problems.map((problem) => (
          <li key={`${problem.line} ${problem.column} ${problem.message}`} className="px-4 py-2">
            <button
              type="button"
              className="text-left text-accent text-sm hover:underline"
              onClick={() => onOpen(problem)}
            >
              {t('Line {line}, column {column}', { line: problem.line, column: problem.column })}
              {problem.field && <code className="ml-2 font-mono text-xs">{problem.field}</code>}
            </button>
            <p className="break-words">{problem.message}</p>
          </li>
        ))}
      </ul>
    </Panel>
  )

interface EditorProps {
  readonly configuration: AnswerOf<'showConfiguration'>
  readonly isReadOnly: boolean
  onApplied(): void
}

function Editor({ configuration, isReadOnly, onApplied }: EditorProps) {
  const form = useFields(`configuration ${configuration.digest}`, { text: configuration.text })
  const { text } = form.values
  const setText = (text: string) => form.set({ text })
  const [isAsking, setAsking] = useState(false)
  const area = useRef<HTMLTextAreaElement>(null)
  const id = useId()
  const check = useMutation({
    mutationFn: () => request('checkConfiguration', { text }),
  })
  const apply = useMutation({
    meta: { done: t('Configuration applied'), changes: ['/configuration', 'catalog'] },
    mutationFn: () => request('applyConfiguration', { text, digest: configuration.digest }),
    onSuccess: () => {
      form.keep()
      onApplied()
    },
  })
  const open = ({ line, column }: Problem) => {
    const lines = text.split('\n')
    const from = lines.slice(0, line - 1).reduce((sum, { length }) => sum + length + 1, 0)
    const end = from + (lines[line - 1]?.length ?? 0)
    area.current?.focus()
    area.current?.setSelectionRange(Math.min(from + column - 1, end), end)
  }
  const { data: checked } = check
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4">
      <div>
        <label htmlFor={id} className="mb-1 block break-all font-medium text-sm">
          {configuration.path}
        </label>
        <textarea
          id={id}
          ref={area}
          rows={ROWS}
          value={text}
          readOnly={isReadOnly}
          spellCheck={false}
          wrap="off"
          className="w-full rounded-md border border-edge bg-surface p-3 font-mono text-xs leading-relaxed"
          onChange={({ target }) => {
            setText(target.value)
            check.reset()
          }}
        />
        {!isReadOnly && (
          <div className="mt-3 flex flex-wrap gap-2">
            <Button kind="primary" isBusy={check.isPending} onClick={() => check.mutate()}>
              {t('Check')}
            </Button>
            <Button
              disabled={checked?.ok !== true || isEmpty(checked.difference) || !configuration.is_writable}
              onClick={() => setAsking(true)}
            >
              {t('Apply')}
            </Button>
            <Button
              kind="quiet"
              disabled={text === configuration.text}
              onClick={() => {
                setText(configuration.text)
                check.reset()
              }}
            >
              {t('Discard the changes')}
            </Button>
          </div>
        )}
        {!configuration.is_writable && (
          <p className="mt-3 text-quiet text-sm">
            {t('The gateway cannot write this file. Change it where the installation is deployed from.')}
          </p>
        )}
      </div>
      <div className="flex flex-col gap-4">
        <ErrorState error={check.error} />
        {checked && (
          <>
            <Problems title={t('Problems')} problems={checked.problems} onOpen={open} />
            <Problems title={t('Warnings')} problems={checked.warnings} onOpen={open} />
            {checked.ok && <Difference difference={checked.difference} />}
          </>
        )}
      </div>
      <Dialog
        title={t('Apply the configuration')}
        description={t('Calls that begin from now on use the new prices and channels.')}
        isOpen={isAsking}
        onClose={() => setAsking(false)}
      >
        <FormError error={apply.error} />
        <Actions>
          <Button onClick={() => setAsking(false)}>{t('Cancel')}</Button>
          <Button kind="primary" isBusy={apply.isPending} onClick={() => apply.mutate()}>
            {t('Apply')}
          </Button>
        </Actions>
      </Dialog>
    </div>
  )
}

export function Catalog() {
  const { user } = useSession()
  const configuration = useGet('showConfiguration', {})
  const [isApplied, setApplied] = useState(false)
  const { data } = configuration
  return (
    <>
      <PageHeader
        title={t('Catalog')}
        description={t('Models, prices and channels from the configuration file. Secrets are masked.')}
        actions={
          <>
            <Link to="/models" className="text-accent hover:underline">
              {t('Models')}
            </Link>
            <Link to="/channels" className="text-accent hover:underline">
              {t('Channels')}
            </Link>
          </>
        }
      />
      <QueryState query={configuration} rows={12} />
      {data?.is_refused && (
        <p role="alert" className="mb-4 rounded-md border border-bad bg-bad-wash p-3 text-bad">
          {t('The file has problems, so an earlier version is in force. Check the file to see them.')}
        </p>
      )}
      {isApplied && (
        <p role="status" className="mb-4 text-good">
          {t('Applied. Every process uses it within a second.')}
        </p>
      )}
      {data && (
        <Editor
          key={data.digest}
          configuration={data}
          isReadOnly={user.installation_role !== 'operator'}
          onApplied={() => setApplied(true)}
        />
      )}
    </>
  )
}
