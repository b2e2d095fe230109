/** One task in full: what it made, where it stands, and the acts that end it or look after it. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { DialogForm, Field, SelectField } from '../../ui/form.tsx'
import { ErrorState, Fact, FactPanel, Panel, QueryState } from '../../ui/states.tsx'
import { Id, Money, Time } from '../../ui/text.tsx'
import { RefundButton, RefundFact } from '../refund.tsx'
import { TaskState } from './state.tsx'

type Task = AnswerOf<'showTask'>
type OperatorTask = AnswerOf<'showAnyTask'>
type File = Task['files'][number]

/** A file of our store is read from the gateway of this page: the policy of the page allows no other plain address. */
function addressOf(url: string): string {
  const { pathname, search } = new URL(url, location.origin)
  return pathname.startsWith('/files/') ? pathname + search : url
}

function Preview({ file: { role, url, expires_at } }: { readonly file: File }) {
  const address = addressOf(url)
  return (
    <li className="flex flex-col gap-2 p-4">
      {(role === 'image' || role === 'cover') && (
        <img src={address} alt={t('Result')} className="max-h-96 max-w-full self-start rounded-md" />
      )}
      {/* biome-ignore lint/a11y/useMediaCaption: providers deliver no captions, and an empty track would announce captions that do not exist. */}
      {role === 'video' && <video src={address} controls className="max-h-96 max-w-full rounded-md" />}
      {/* biome-ignore lint/a11y/useMediaCaption: providers deliver no captions, and an empty track would announce captions that do not exist. */}
      {role === 'audio' && <audio src={address} controls className="w-full" />}
      <p className="flex flex-wrap items-center gap-x-4 text-sm">
        <a href={address} download className="text-accent underline">
          {t('Download')}
        </a>
        {expires_at && (
          <span className="text-quiet">
            {t('Link until')} <Time at={expires_at} />
          </span>
        )}
      </p>
    </li>
  )
}

function Facts({ task }: { readonly task: Task | OperatorTask }) {
  return (
    <FactPanel>
      <Fact name={t('State')} value={<TaskState state={task.state} />} />
      <Fact name={t('Task')} value={<Id id={task.id} />} />
      <Fact name={t('Kind')} value={task.kind} />
      <Fact name={t('Model')} value={task.model} />
      <Fact
        name={t('Call')}
        value={
          <Link
            to="/calls"
            search={{ account: task.account_id, ref: task.request_id, period: 'all' }}
            className="text-accent hover:underline"
          >
            {task.request_id}
          </Link>
        }
      />
      <Fact name={t('Held')} value={<Money amount={task.hold} />} />
      {task.cost !== null && <Fact name={t('Cost')} value={<Money amount={task.cost} />} />}
      <RefundFact refund={task.refund} />
      {task.error_message && <Fact name={task.error_code ?? t('Error')} value={task.error_message} />}
      <Fact name={t('Submitted')} value={<Time at={task.created_at} />} />
      {task.ended_at ? (
        <Fact name={t('Ended')} value={<Time at={task.ended_at} />} />
      ) : (
        <Fact name={t('Ends at the latest')} value={<Time at={task.deadline_at} />} />
      )}
      {'channel_id' in task && (
        <>
          <Fact name={t('Channel')} value={task.channel_id ?? '–'} />
          <Fact name={t('Model of the channel')} value={task.upstream_model ?? '–'} />
          <Fact name={t('Task of the provider')} value={task.upstream_id ?? '–'} />
          <Fact name={t('State at the provider')} value={task.upstream_state ?? '–'} />
        </>
      )}
    </FactPanel>
  )
}

interface EndProps {
  readonly id: string
  onClose(): void
  onDone(provider: string): void
}

function EndDialog({ id, onClose, onDone }: EndProps) {
  const [as, setAs] = useState<'cancelled' | 'failed'>('cancelled')
  const [reason, setReason] = useState('')
  const end = useMutation({
    meta: { done: t('Task ended') },
    mutationFn: () => request('endTask', { id, as, reason: reason.trim() === '' ? null : reason }),
    onSuccess: ({ provider }) => onDone(provider),
  })
  return (
    <Dialog
      title={t('End the task')}
      description={t('The customer gets the whole hold back. The provider is asked to cancel the task.')}
      onClose={onClose}
    >
      <DialogForm sends={end} act={t('End the task')} kind="danger" onClose={onClose}>
        <SelectField
          label={t('As')}
          value={as}
          onText={(text) => setAs(text === 'failed' ? 'failed' : 'cancelled')}
          options={[
            ['cancelled', t('cancelled, for the customer')],
            ['failed', t('failed: it came to nothing')],
          ]}
        />
        <Field
          label={t('Reason')}
          hint={t('The customer reads it.')}
          required={as === 'failed'}
          maxLength={500}
          value={reason}
          onText={setReason}
        />
      </DialogForm>
    </Dialog>
  )
}

interface DetailProps {
  readonly id: string
  readonly isOperator: boolean
  readonly mayCancel: boolean
  readonly isWhole: boolean
}

export function TaskDetail({ id, isOperator, mayCancel, isWhole }: DetailProps) {
  const queries = useQueryClient()
  const [isEnding, setEnding] = useState(false)
  const task = useGet(isWhole ? 'showAnyTask' : 'showTask', { id })
  const changed = () =>
    queries.invalidateQueries({ predicate: ({ queryKey }) => String(queryKey[0]).includes('/tasks') })
  const cancel = useMutation({
    meta: { done: t('Task cancelled') },
    mutationFn: () => request('cancelTask', { id }),
    onSettled: changed,
  })
  const retry = useMutation({
    meta: { done: t('The task is asked for again') },
    mutationFn: () => request('retryTask', { id }),
    onSettled: changed,
  })
  const [provider, setProvider] = useState<string | null>(null)
  if (!task.isSuccess) return <QueryState query={task} rows={8} />
  const { data } = task
  const isOpen = data.ended_at === null
  return (
    <>
      <ErrorState error={cancel.error ?? retry.error} />
      {provider !== null && (
        <p role="status" className="text-quiet">
          {t('The provider {what}.', { what: provider })}
        </p>
      )}
      {data.files.length > 0 && (
        <Panel title={t('Results')}>
          <ul className="divide-y divide-line">
            {data.files.map((file) => (
              <Preview key={file.url} file={file} />
            ))}
          </ul>
        </Panel>
      )}
      <Facts task={data} />
      <div className="flex flex-wrap gap-2">
        {data.files.length > 0 && <Button onClick={() => void task.refetch()}>{t('Fresh links')}</Button>}
        <RefundButton
          accountId={data.account_id}
          refId={data.id}
          cost={data.cost}
          refund={data.refund}
          onDone={() => void task.refetch()}
        />
        {isOpen && mayCancel && (
          <Button kind="danger" isBusy={cancel.isPending} onClick={() => cancel.mutate()}>
            {t('Cancel the task')}
          </Button>
        )}
        {isOpen && isOperator && (
          <>
            <Button isBusy={retry.isPending} onClick={() => retry.mutate()}>
              {t('Ask the provider now')}
            </Button>
            <Button kind="danger" onClick={() => setEnding(true)}>
              {t('End the task')}
            </Button>
          </>
        )}
      </div>
      {isEnding && (
        <EndDialog
          id={id}
          onClose={() => setEnding(false)}
          onDone={(what) => {
            setEnding(false)
            setProvider(what)
            void changed()
          }}
        />
      )}
    </>
  )
}
