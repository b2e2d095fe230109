/** One agent: edited, compared, tried, published. */
import { useMutation } from '@tanstack/react-query'
import type { AgentFile } from '../../../../schemas/accounts/agent.ts'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmButton } from '../../ui/dialog.tsx'
import { ErrorState, Panel } from '../../ui/states.tsx'
import { Id } from '../../ui/text.tsx'
import { AgentForm } from './form.tsx'
import { type Agent, AgentState } from './state.tsx'
import { TryAgent } from './try.tsx'

const print = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function Difference({ before, after }: { readonly before: AgentFile; readonly after: AgentFile }) {
  const names = Object.keys(after) as (keyof AgentFile)[]
  const changed = names.filter((name) => print(before[name]) !== print(after[name]))
  return (
    <Panel title={t('The draft changes')}>
      <dl className="divide-y divide-line">
        {changed.map((name) => (
          <div key={name} className="px-4 py-2">
            <dt className="text-quiet text-sm">{name}</dt>
            <dd className="whitespace-pre-wrap break-words text-sm">
              <del className="block text-bad">{print(before[name])}</del>
              <ins className="block text-good">{print(after[name])}</ins>
            </dd>
          </div>
        ))}
      </dl>
    </Panel>
  )
}

export function AgentDetail({ agent, mayChange }: { readonly agent: Agent; readonly mayChange: boolean }) {
  const { id, state, file, draft, warnings } = agent
  const changes = ['/agents'] as const
  const save = useMutation({
    meta: { done: t('Draft saved'), changes },
    mutationFn: (edited: AgentFile) => request('saveDraft', { id, file: edited }),
  })
  const discard = useMutation({
    meta: { done: t('Draft discarded'), changes },
    mutationFn: () => request('discardDraft', { id }),
  })
  const publish = useMutation({
    meta: { done: t('Agent published'), changes },
    mutationFn: () => request('publishAgent', { id }),
  })
  const unpublish = useMutation({
    meta: { done: t('Agent unpublished'), changes },
    mutationFn: () => request('unpublishAgent', { id }),
  })
  const edited = draft ?? file
  return (
    <>
      <div className="flex flex-wrap items-center gap-3">
        <AgentState agent={agent} />
        <Id id={id} />
      </div>
      {warnings.length > 0 && (
        <ul className="rounded-md border border-warn bg-warn-wash p-3 text-sm">
          {warnings.map((warning) => (
            <li key={warning}>{t('Calls would be refused: {why}', { why: warning })}</li>
          ))}
        </ul>
      )}
      <ErrorState error={discard.error ?? publish.error ?? unpublish.error} />
      {mayChange && (
        <div className="flex flex-wrap gap-2">
          {(state !== 'published' || draft !== null) && (
            <Button kind="primary" isBusy={publish.isPending} onClick={() => publish.mutate()}>
              {t('Publish')}
            </Button>
          )}
          {draft !== null && (
            <Button isBusy={discard.isPending} onClick={() => discard.mutate()}>
              {t('Discard the draft')}
            </Button>
          )}
          {state === 'published' && (
            <Button isBusy={unpublish.isPending} onClick={() => unpublish.mutate()}>
              {t('Unpublish')}
            </Button>
          )}
          <ConfirmButton
            kind="danger"
            title={t('Delete {name}', { name: file.name })}
            description={t('Its keys open nothing any more. This cannot be undone.')}
            name={file.name}
            act={t('Delete')}
            meta={{ done: t('Agent deleted'), changes }}
            onConfirm={() => request('deleteAgent', { id })}
          />
        </div>
      )}
      {draft !== null && <Difference before={file} after={draft} />}
      {mayChange && <TryAgent key={JSON.stringify(edited)} agent={agent} />}
      <Panel title={t('Edit')}>
        <div className="p-4">
          <AgentForm
            key={JSON.stringify(edited)}
            file={edited}
            act={mayChange ? t('Save as a draft') : null}
            isBusy={save.isPending}
            error={save.error}
            onSave={(changed) => save.mutate(changed)}
          />
        </div>
      </Panel>
    </>
  )
}
