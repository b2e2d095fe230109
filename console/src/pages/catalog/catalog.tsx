/** The configuration file, with models, prices and channels: check it, compare it, apply it. */

import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useId, useRef, useState } from 'react'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { useSession } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { Actions } from '../../ui/form.tsx'
import { ErrorState, FormError, PageHeader, Panel, QueryState } from '../../ui/states.tsx'
import { type Checked, Differences, isEmpty } from './difference.tsx'
import { Entries } from './entries.tsx'
import type { Place } from './entry-form.tsx'
import { History } from './history.tsx'

type Problem = Checked['problems'][number]

const ROWS = 28

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

/** Says which copy of the file is written, and how other machines get it. */
function describeCopies({ host, other_hosts: others }: AnswerOf<'showConfiguration'>): string {
  if (others.length === 0)
    return t('This is the file of {host}. All processes of the installation read it.', { host })
  return t(
    'You are editing the copy on {host}. {others} have their own copies: copy the file there too, or deploy it to every machine. Each machine picks up a change within a second.',
    { host, others: others.join(', ') },
  )
}

/** Selects a place up to the end of its line. */
function select(area: HTMLTextAreaElement | null, { line, column }: Place): void {
  const lines = area?.value.split('\n') ?? []
  const from = lines.slice(0, line - 1).reduce((sum, { length }) => sum + length + 1, 0)
  const end = from + (lines[line - 1]?.length ?? 0)
  area?.focus()
  area?.setSelectionRange(Math.min(from + column - 1, end), end)
}

interface ApplyDialogProps {
  readonly checked: AnswerOf<'checkConfiguration'> | undefined
  readonly apply: { readonly error: Error | null; readonly isPending: boolean; mutate(): void }
  readonly isOpen: boolean
  onClose(): void
}

const ApplyDialog = ({ checked, apply, isOpen, onClose }: ApplyDialogProps) => (
  <Dialog
    isWide
    title={t('Apply the configuration')}
    description={t('Calls that begin from now on use the new prices and channels.')}
    isOpen={isOpen}
    onClose={onClose}
  >
    {checked?.ok && <Differences checked={checked} />}
    <FormError error={apply.error} />
    <Actions>
      <Button onClick={onClose}>{t('Cancel')}</Button>
      <Button kind="primary" isBusy={apply.isPending} onClick={() => apply.mutate()}>
        {t('Apply')}
      </Button>
    </Actions>
  </Dialog>
)

interface FindingsProps {
  readonly checked: AnswerOf<'checkConfiguration'>
  onOpen(place: Place): void
}

const Findings = ({ checked, onOpen }: FindingsProps) => (
  <>
    <Problems title={t('Problems')} problems={checked.problems} onOpen={onOpen} />
    <Problems title={t('Warnings')} problems={checked.warnings} onOpen={onOpen} />
    {checked.ok && <Differences checked={checked} />}
  </>
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
    mutationFn: (checked: string) => request('checkConfiguration', { text: checked }),
  })
  const apply = useMutation({
    meta: {
      done: t('Configuration applied'),
      changes: ['/configuration', 'catalog', '/installation/audit'],
    },
    mutationFn: () => request('applyConfiguration', { text, digest: configuration.digest }),
    onSuccess: () => {
      form.keep()
      onApplied()
    },
  })
  const open = (place: Place) => select(area.current, place)
  const { data: checked } = check
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4">
      {!isReadOnly && (
        <Entries
          text={text}
          // A dialog that closes gives the focus back to its button first.
          onOpen={(place) => setTimeout(() => open(place), 100)}
          onEdited={(edited) => {
            setText(edited)
            check.mutate(edited)
          }}
        />
      )}
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
            <Button kind="primary" isBusy={check.isPending} onClick={() => check.mutate(text)}>
              {t('Check')}
            </Button>
            <Button
              disabled={
                checked?.ok !== true ||
                (isEmpty(checked.difference) && checked.lines.length === 0) ||
                !configuration.is_writable
              }
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
        <p className="mt-3 text-quiet text-sm">{describeCopies(configuration)}</p>
        {!configuration.is_writable && (
          <p className="mt-3 text-quiet text-sm">
            {t('The gateway cannot write this file. Change it where the installation is deployed from.')}
          </p>
        )}
      </div>
      <div className="flex flex-col gap-4">
        <ErrorState error={check.error} />
        {checked && <Findings checked={checked} onOpen={open} />}
      </div>
      <ApplyDialog checked={checked} apply={apply} isOpen={isAsking} onClose={() => setAsking(false)} />
    </div>
  )
}

export function Catalog() {
  const { user } = useSession()
  // A newer file would open in place of what is typed: applying says that it has changed.
  const configuration = useGet(
    'showConfiguration',
    {},
    { refetchOnReconnect: false, refetchOnWindowFocus: false },
  )
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
          {t('Applied. Every process of this machine uses it within a second.')}
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
      <div className="mt-6">
        <History />
      </div>
    </>
  )
}
