/** One agent: edit it, compare its draft, try it, publish it. */

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { AgentFile } from '../../../../schemas/accounts/agent.ts'
import { readTyped } from '../../../../src/core/confirmation.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Action } from '../../ui/dialog.tsx'
import { Badge, Panel } from '../../ui/states.tsx'
import { Id } from '../../ui/text.tsx'
import { AgentForm } from './form.tsx'
import { PublishDialog } from './publish.tsx'
import { TryAgent } from './try.tsx'

export type Agent = AnswerOf<'listAgents'>['data'][number]

const CHANGED = ['/agents'] as const

export const AgentStatus = ({ agent: { state, draft } }: { readonly agent: Agent }) => (
  <span className="inline-flex flex-wrap gap-1">
    <Badge tone={state === 'published' ? 'good' : 'neutral'}>
      {state === 'published' ? t('Published') : t('Not published')}
    </Badge>
    {draft && <Badge tone="warn">{t('Draft')}</Badge>}
  </span>
)

const print = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function Difference({ before, after }: { readonly before: AgentFile; readonly after: AgentFile }) {
  const names = Object.keys(after) as (keyof AgentFile)[]
  const changed = names.filter((name) => print(before[name]) !== print(after[name]))
  return (
    <Panel title={t('Changes in the draft')}>
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

function AgentActions({ agent }: { readonly agent: Agent }) {
  const { id, state, file, draft } = agent
  // Not in the button, which goes once the agent is published: the dialog goes on with its key.
  const [isPublishing, setPublishing] = useState(false)
  return (
    <div className="flex flex-wrap gap-2">
      {(state !== 'published' || draft !== null) && (
        <Button kind="primary" onClick={() => setPublishing(true)}>
          {t('Publish')}
        </Button>
      )}
      {draft !== null && (
        <Action done={t('Draft discarded')} changes={CHANGED} run={() => request('discardDraft', { id })}>
          {t('Discard the draft')}
        </Action>
      )}
      {state === 'published' && (
        <Action
          confirm={{
            title: t('Unpublish {name}', { name: file.name }),
            description: t('Calls with its keys are refused until you publish it again.'),
            submit: t('Unpublish'),
          }}
          done={t('Agent unpublished')}
          changes={CHANGED}
          run={() => request('unpublishAgent', { id })}
        >
          {t('Unpublish')}
        </Action>
      )}
      <Action
        kind="danger"
        confirm={{
          title: t('Delete {name}', { name: file.name }),
          description: t('Its keys stop working. This cannot be undone.'),
          name: readTyped('deleteAgent', file),
          submit: t('Delete'),
        }}
        done={t('Agent deleted')}
        changes={CHANGED}
        run={() => request('deleteAgent', { id })}
      >
        {t('Delete')}
      </Action>
      {isPublishing && <PublishDialog agent={agent} onClose={() => setPublishing(false)} />}
    </div>
  )
}

export function AgentDetail({ agent, mayChange }: { readonly agent: Agent; readonly mayChange: boolean }) {
  const { id, file, draft, warnings } = agent
  const save = useMutation({
    meta: { done: t('Draft saved'), changes: CHANGED },
    mutationFn: (edited: AgentFile) => request('saveDraft', { id, file: edited }),
  })
  const edited = draft ?? file
  return (
    <>
      <div className="flex flex-wrap items-center gap-3">
        <AgentStatus agent={agent} />
        <Id id={id} />
      </div>
      {warnings.length > 0 && (
        <ul className="rounded-md border border-warn bg-warn-wash p-3 text-sm">
          {warnings.map((warning) => (
            <li key={warning}>{t('Calls would be refused: {why}', { why: warning })}</li>
          ))}
        </ul>
      )}
      {mayChange && <AgentActions agent={agent} />}
      {draft !== null && <Difference before={file} after={draft} />}
      {mayChange && <TryAgent key={JSON.stringify(edited)} agent={agent} />}
      <Panel title={t('Edit')}>
        <div className="p-4">
          <AgentForm
            key={JSON.stringify(edited)}
            file={edited}
            draft={id}
            submit={mayChange ? t('Save as a draft') : null}
            saves={save}
          />
        </div>
      </Panel>
    </>
  )
}
