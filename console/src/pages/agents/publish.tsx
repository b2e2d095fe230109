/** Publishes an agent, then makes its key with a cap, then shows how to call it: one dialog. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { catalogQuery } from '../../api/catalog.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { Actions, AmountField, DialogForm, Done } from '../../ui/form.tsx'
import { FormError } from '../../ui/states.tsx'
import { CodeBlock } from '../../ui/text.tsx'
import { Arrival, SnippetTabs } from '../first-call/first-call.tsx'
import { makeSnippets } from '../first-call/snippets.ts'
import { ProgramNameField } from '../token-fields.tsx'

type Agent = AnswerOf<'listAgents'>['data'][number]

/** An agent answers chat-completions only. */
const LANGUAGES: ReadonlySet<string> = new Set(['curl', 'openai-py', 'openai-js'])

interface PublishProps {
  readonly agent: Agent
  onClose(): void
}

/** Says why every call would be refused. */
const Refusal = ({ agent: { warnings }, onClose }: PublishProps) => (
  <>
    <p className="mb-2">{t('It is not published: every call would be refused, because')}</p>
    <ul className="list-disc pl-5">
      {warnings.map((warning) => (
        <li key={warning}>{warning}</li>
      ))}
    </ul>
    <Done onClose={onClose} />
  </>
)

function Publish({
  agent: { id, file, draft },
  onClose,
  onPublished,
}: PublishProps & { onPublished(): void }) {
  const publish = useMutation({
    meta: { done: t('Agent published'), changes: ['/agents'] },
    mutationFn: () => request('publishAgent', { id }),
    onSuccess: onPublished,
  })
  return (
    <>
      <p>
        {t('Calls with keys of {name} are answered by {model} as the agent is written now.', {
          name: (draft ?? file).name,
          model: (draft ?? file).model,
        })}
      </p>
      <FormError error={publish.error} />
      <Actions>
        <Button onClick={onClose}>{t('Cancel')}</Button>
        <Button kind="primary" isBusy={publish.isPending} onClick={() => publish.mutate()}>
          {t('Publish now')}
        </Button>
      </Actions>
    </>
  )
}

type Created = AnswerOf<'createKey'>

function KeyForm({ agent: { id, account_id }, onCreated }: PublishProps & { onCreated(key: Created): void }) {
  const form = useFields(`key of agent ${id}`, { name: '', spend_cap: '' })
  const { field, values } = form
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const create = useMutation({
    meta: { changes: ['/keys'] },
    mutationFn: () =>
      request('createKey', { account_id, kind: 'agent', agent_id: id, ...values }, { idempotencyKey }),
    onSuccess: onCreated,
  })
  return (
    <DialogForm sends={create} fields={form} submit={t('Create its key')} cancel={t('Not now')}>
      <p role="status" className="text-good">
        {t('The agent is published. To call it, programs need a key for this agent.')}
      </p>
      <ProgramNameField {...field('name')} />
      <AmountField
        label={t('Spend cap in credits')}
        hint={t('What the key may spend in total.')}
        {...field('spend_cap')}
      />
    </DialogForm>
  )
}

function Snippets({ agent, created }: { readonly agent: Agent; readonly created: Created }) {
  const { data: models = [] } = useQuery(catalogQuery)
  const model = models.find(({ id }) => id === agent.file.model)
  return (
    <div className="flex flex-col gap-3">
      <CodeBlock isWrapped label={t('Key')} code={created.key} />
      {model && (
        <SnippetTabs
          snippets={makeSnippets(model, { origin: location.origin, key: created.key }).filter(({ id }) =>
            LANGUAGES.has(id),
          )}
        />
      )}
      <Arrival accountId={created.account_id} keyId={created.id} />
    </div>
  )
}

export function PublishDialog(props: PublishProps) {
  const { agent, onClose } = props
  const [isPublished, setPublished] = useState(false)
  const [created, setCreated] = useState<Created | null>(null)
  const name = (agent.draft ?? agent.file).name
  return (
    <Dialog isWide title={t('Publish {name}', { name })} onClose={onClose}>
      {created !== null ? (
        <>
          <Snippets agent={agent} created={created} />
          <Done onClose={onClose} />
        </>
      ) : isPublished ? (
        <KeyForm {...props} onCreated={setCreated} />
      ) : agent.warnings.length > 0 ? (
        <Refusal {...props} />
      ) : (
        <Publish {...props} onPublished={() => setPublished(true)} />
      )}
    </Dialog>
  )
}
