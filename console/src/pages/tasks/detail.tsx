/** One task in full: its results, its status, and the operations that end it. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Action, Dialog, DialogButton } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { DialogForm, SelectField } from '../../ui/form.tsx'
import { Fact, FactPanel, Panel, QueryState, StatusBadge } from '../../ui/states.tsx'
import { Anchor, Id, Money, NONE, TextLink, Time } from '../../ui/text.tsx'
import { ReasonField } from '../reason-field.tsx'
import { RefundButton, RefundFact } from '../refund.tsx'
import { describeStatuses } from './status.ts'

type Task = AnswerOf<'showTask'>
type OperatorTask = AnswerOf<'showAnyTask'>
type File = Task['files'][number]

/** Returns the address of a stored file at this gateway: the page's policy allows no other plain HTTP address. */
function toOwnAddress(url: string): string {
  const { pathname, search } = new URL(url, location.origin)
  return pathname.startsWith('/files/') ? pathname + search : url
}

/** Every reading signs new links: a player keeps the one that it plays. */
function Preview({ file }: { readonly file: File }) {
  const [{ role, url, expires_at }] = useState(file)
  const address = toOwnAddress(url)
  return (
    <li className="flex flex-col gap-2 p-4">
      {(role === 'image' || role === 'cover') && (
        <img src={address} alt={t('Result')} className="max-h-96 max-w-full self-start rounded-md" />
      )}
      {/* biome-ignore lint/a11y/useMediaCaption: models generate no captions, and an empty track would offer captions that do not exist. */}
      {role === 'video' && <video src={address} controls className="max-h-96 max-w-full rounded-md" />}
      {/* biome-ignore lint/a11y/useMediaCaption: models generate no captions for sound either. */}
      {role === 'audio' && <audio src={address} controls className="w-full" />}
      <p className="flex flex-wrap items-center gap-x-4 text-sm">
        <Anchor isAmongWords href={address} download>
          {t('Download')}
        </Anchor>
        {expires_at && (
          <span className="text-quiet">
            {t('Link until')} <Time at={expires_at} />
          </span>
        )}
      </p>
    </li>
  )
}

const Facts = ({ task }: { readonly task: Task | OperatorTask }) => (
  <FactPanel>
    <Fact name={t('Status')} value={<StatusBadge statuses={describeStatuses()} status={task.state} />} />
    <Fact name={t('Task')} value={<Id id={task.id} />} />
    <Fact name={t('Kind')} value={task.kind} />
    <Fact name={t('Model')} value={task.model} />
    <Fact
      name={t('Call')}
      value={
        <TextLink to="/calls" search={{ account: task.account_id, ref: task.request_id, period: 'all' }}>
          {task.request_id}
        </TextLink>
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
      <Fact name={t('Deadline')} value={<Time at={task.deadline_at} />} />
    )}
    {'channel_id' in task && (
      <>
        <Fact name={t('Channel')} value={task.channel_id ?? NONE} />
        <Fact name={t('Model of the channel')} value={task.upstream_model ?? NONE} />
        <Fact name={t('Provider task')} value={task.upstream_id ?? NONE} />
        <Fact name={t('Status at the provider')} value={task.upstream_state ?? NONE} />
      </>
    )}
  </FactPanel>
)

interface EndProps {
  readonly id: string
  onClose(): void
  onDone(provider: string): void
}

function EndDialog({ id, onClose, onDone }: EndProps) {
  const form = useFields(`end of ${id}`, { as: 'cancelled' as 'cancelled' | 'failed', reason: '' })
  const { field } = form
  const { as, reason } = form.values
  const end = useMutation({
    meta: { done: t('Task ended') },
    mutationFn: () => request('endTask', { id, as, reason: reason.trim() === '' ? null : reason }),
    onSuccess: ({ provider }) => {
      onClose()
      onDone(provider)
    },
  })
  return (
    <Dialog
      title={t('End the task')}
      description={t('The customer gets the whole hold back. The provider is asked to cancel the task.')}
      onClose={onClose}
    >
      <DialogForm sends={end} fields={form} submit={t('End the task')} kind="danger">
        <SelectField
          label={t('As')}
          {...field('as')}
          options={[
            ['cancelled', t('cancelled, for the customer')],
            ['failed', t('failed, without a result')],
          ]}
        />
        <ReasonField hint={t('The customer can read it.')} {...field('reason')} required={as === 'failed'} />
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
  const task = useGet(isWhole ? 'showAnyTask' : 'showTask', { id })
  const refresh = () =>
    queries.invalidateQueries({ predicate: ({ queryKey }) => String(queryKey[0]).includes('/tasks') })
  const [provider, setProvider] = useState<string | null>(null)
  const [linksAt, setLinksAt] = useState(0)
  if (!task.isSuccess) return <QueryState query={task} rows={8} />
  const { data } = task
  const isOpen = data.ended_at === null
  return (
    <>
      {provider !== null && (
        <p role="status" className="text-quiet">
          {t('The provider {what}.', { what: provider })}
        </p>
      )}
      {data.files.length > 0 && (
        <Panel title={t('Results')}>
          <ul className="divide-y divide-line">
            {data.files.map((file) => (
              <Preview key={`${linksAt} ${file.url.split('?')[0]}`} file={file} />
            ))}
          </ul>
        </Panel>
      )}
      <Facts task={data} />
      <div className="flex flex-wrap gap-2">
        {data.files.length > 0 && (
          <Button onClick={() => void task.refetch().then(({ dataUpdatedAt }) => setLinksAt(dataUpdatedAt))}>
            {t('Refresh the links')}
          </Button>
        )}
        <RefundButton
          accountId={data.account_id}
          refId={data.id}
          cost={data.cost}
          refund={data.refund}
          onDone={() => void task.refetch()}
        />
        {isOpen && mayCancel && (
          <Action
            kind="danger"
            confirm={{
              title: t('Cancel the task'),
              description: t('The provider is asked to stop it, and its price is refunded in full.'),
              submit: t('Cancel the task'),
            }}
            done={t('Task cancelled')}
            run={() => request('cancelTask', { id }).finally(refresh)}
          >
            {t('Cancel the task')}
          </Action>
        )}
        {isOpen && isOperator && (
          <>
            <Action
              done={t('The provider is being asked')}
              run={() => request('retryTask', { id }).finally(refresh)}
            >
              {t('Ask the provider now')}
            </Action>
            <DialogButton
              kind="danger"
              dialog={(onClose) => (
                <EndDialog
                  id={id}
                  onClose={onClose}
                  onDone={(what) => {
                    setProvider(what)
                    void refresh()
                  }}
                />
              )}
            >
              {t('End the task')}
            </DialogButton>
          </>
        )}
      </div>
    </>
  )
}
