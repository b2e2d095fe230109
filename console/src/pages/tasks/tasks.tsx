/** Tasks: images, videos, music, speech and other work that outlives its request. */

import { getRouteApi } from '@tanstack/react-router'
import { ListTodo } from 'lucide-react'
import { ROUTES } from '../../../../schemas/routes.ts'
import { TASK_KINDS } from '../../../../schemas/tasks/kinds.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { useAccount, useSession } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { toZoneRange } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Drawer } from '../../ui/dialog.tsx'
import { ManyAction } from '../../ui/selection.tsx'
import { listNames, PageHeader, StatusBadge } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Money, TextLink, Time } from '../../ui/text.tsx'
import { Filter, PeriodFilter, ScopeFilter, useIsWhole } from '../filters.tsx'
import { FirstCurl } from '../first-call/first-call.tsx'
import { SavedViews } from '../saved-views.tsx'
import { TaskDetail } from './detail.tsx'
import { LostSubmits } from './lost-submits.tsx'
import { describeStatuses } from './status.ts'

const route = getRouteApi('/signed-in/tasks')

type Task = AnswerOf<'listTasks'>['data'][number]

const OPEN = 'open'

const readId = ({ id }: Task): string => id
const isOpen = ({ ended_at }: Task): boolean => ended_at === null

interface ManyTasksProps {
  readonly rows: readonly Task[]
  readonly isWhole: boolean
  onDone(): void
}

/** What is done with several tasks that have not ended. */
function ManyTasks({ rows, isWhole, onDone }: ManyTasksProps) {
  const common = { rows, name: readId, onDone } as const
  if (rows.length === 0) return <span className="text-quiet text-sm">{t('They have ended.')}</span>
  return isWhole ? (
    <ManyAction
      {...common}
      done={t('The provider is being asked')}
      changes={['/installation/tasks']}
      run={({ id }) => request('retryTask', { id })}
    >
      {t('Ask the provider now')}
    </ManyAction>
  ) : (
    <ManyAction
      {...common}
      kind="danger"
      confirm={{
        title: t('Cancel {count} tasks', { count: rows.length }),
        description: t('The provider is asked to stop them, and their price is refunded in full.'),
        submit: t('Cancel the tasks'),
      }}
      done={t('Tasks cancelled')}
      changes={['/tasks']}
      run={({ id }) => request('cancelTask', { id })}
    >
      {t('Cancel the tasks')}
    </ManyAction>
  )
}

export function Tasks() {
  const { account_id: accountId, role } = useAccount()
  const isOperator = useSession().user.installation_role === 'operator'
  const { kind, state, scope, task: open, account: _, ...period } = route.useSearch()
  const isWhole = useIsWhole(scope)
  const filters = {
    kind,
    ...(state === OPEN ? { open: true } : { state }),
    account_id: isWhole ? undefined : accountId,
    ...toZoneRange(period),
  }
  const mayCancel = !isWhole && (role === 'owner' || role === 'admin')
  const list = useList(isWhole ? 'listAllTasks' : 'listTasks', filters as never)
  const statuses = describeStatuses()
  const columns: Column<Task>[] = [
    { name: t('Submitted'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: t('Task'),
      cell: ({ id }) => (
        <TextLink from="/tasks" to="." search={(all) => ({ ...all, task: id })} className="font-mono text-xs">
          {id}
        </TextLink>
      ),
    },
    { name: t('Kind'), from: 'wide', cell: ({ kind: made }) => made },
    { name: t('Model'), cell: ({ model }) => model },
    { name: t('Status'), cell: ({ state: now }) => <StatusBadge statuses={statuses} status={now} /> },
    ...(isWhole ? [{ name: t('Account'), cell: ({ account_id }: Task) => account_id }] : []),
    { name: t('Held'), isNumber: true, from: 'wide', cell: ({ hold }) => <Money amount={hold} /> },
    { name: t('Cost'), isNumber: true, cell: ({ cost }) => <Money amount={cost} /> },
  ]
  const change = useChangeSearch()
  return (
    <>
      <PageHeader
        title={t('Tasks')}
        description={t('Images, videos, music and speech: work that outlives its request.')}
      />
      {isWhole && <LostSubmits mayChange={isOperator} />}
      <SavedViews page="tasks" filters={{ kind, state, scope, ...period }} />
      <div className="mb-4 grid max-w-4xl gap-3 sm:grid-cols-4">
        <PeriodFilter value={period} hasAll usual="all" />
        <Filter name="kind" label={t('Kind')} value={kind} options={TASK_KINDS.map((name) => [name, name])} />
        <Filter
          name="state"
          label={t('Status')}
          value={state}
          options={[[OPEN, t('Not ended')], ...listNames(statuses)]}
        />
        <ScopeFilter value={scope} />
      </div>
      <ListPanel
        caption={t('Tasks')}
        list={list}
        columns={columns}
        empty={{ title: t('No tasks match.'), icon: ListTodo, docs: 'api-rules.md' }}
        selects={
          mayCancel || (isWhole && isOperator)
            ? {
                name: readId,
                actions: (rows, onDone) => (
                  <ManyTasks rows={rows.filter(isOpen)} isWhole={isWhole} onDone={onDone} />
                ),
              }
            : undefined
        }
      >
        <FirstCurl
          path={ROUTES.makeVideo[1]}
          endpointType="videos_generations"
          body={{ prompt: 'A fox in the snow' }}
        />
      </ListPanel>
      <Drawer
        isBeside
        title={t('Task')}
        isOpen={open !== undefined}
        onClose={() => change({ task: undefined })}
      >
        {open && (
          <TaskDetail key={open} id={open} isWhole={isWhole} isOperator={isOperator} mayCancel={mayCancel} />
        )}
      </Drawer>
    </>
  )
}
