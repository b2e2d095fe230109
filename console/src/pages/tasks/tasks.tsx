/** Tasks: images, films, music, speech and other work that outlives its request. */

import { getRouteApi, Link } from '@tanstack/react-router'
import { ROUTES } from '../../../../schemas/routes.ts'
import { TASK_KINDS } from '../../../../schemas/tasks/kinds.ts'
import type { AnswerOf } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { useAccount, useSession } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Drawer } from '../../ui/dialog.tsx'
import { SelectField } from '../../ui/form.tsx'
import { EmptyState, PageHeader } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { CodeBlock, Money, Time } from '../../ui/text.tsx'
import { SavedViews } from '../saved-views.tsx'
import { ScopeField, useIsWhole } from '../scope-field.tsx'
import { TaskDetail } from './detail.tsx'
import { LostSubmits } from './lost-submits.tsx'
import { stateNames, TaskState } from './state.tsx'

const route = getRouteApi('/signed-in/tasks')

type Task = AnswerOf<'listTasks'>['data'][number]

const OPEN = 'open'

const firstTask = () => `curl ${location.origin}${ROUTES.makeVideo[1]} \\
  -H "Authorization: Bearer $TOLLGATE_KEY" -H 'Content-Type: application/json' \\
  -d '{"model":"MODEL","prompt":"A fox in the snow","duration":6}'`

export function Tasks() {
  const { account_id: accountId, role } = useAccount()
  const { user } = useSession()
  const { kind, state, scope, task: open } = route.useSearch()
  const isWhole = useIsWhole(scope)
  const filters = {
    kind,
    ...(state === OPEN ? { open: true } : { state }),
    account_id: isWhole ? undefined : accountId,
  }
  const list = useList(isWhole ? 'listAllTasks' : 'listTasks', filters as never)
  const columns: Column<Task>[] = [
    { name: t('Submitted'), cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: t('Task'),
      cell: ({ id }) => (
        <Link
          from="/tasks"
          to="."
          search={(all) => ({ ...all, task: id })}
          className="font-mono text-accent text-xs hover:underline"
        >
          {id}
        </Link>
      ),
    },
    { name: t('Kind'), cell: ({ kind: made }) => made },
    { name: t('Model'), cell: ({ model }) => model },
    { name: t('State'), cell: ({ state: now }) => <TaskState state={now} /> },
    ...(isWhole ? [{ name: t('Account'), cell: ({ account_id }: Task) => account_id }] : []),
    { name: t('Held'), isNumber: true, cell: ({ hold }) => <Money amount={hold} /> },
    { name: t('Cost'), isNumber: true, cell: ({ cost }) => (cost === null ? '–' : <Money amount={cost} />) },
  ]
  const change = useChangeSearch()
  return (
    <>
      <PageHeader
        title={t('Tasks')}
        description={t('Images, films, music and speech: work that outlives its request.')}
      />
      {isWhole && <LostSubmits mayAct={user.installation_role === 'operator'} />}
      <SavedViews page="tasks" filters={{ kind, state, scope }} />
      <div className="mb-4 grid max-w-2xl gap-3 sm:grid-cols-3">
        <SelectField
          label={t('Kind')}
          value={kind ?? ''}
          onText={(text) => change({ kind: text })}
          options={[['', t('All')], ...TASK_KINDS.map((name) => [name, name] as const)]}
        />
        <SelectField
          label={t('State')}
          value={state ?? ''}
          onText={(text) => change({ state: text })}
          options={[['', t('All')], [OPEN, t('Not ended')], ...Object.entries(stateNames())]}
        />
        <ScopeField value={scope} onChange={(value) => change({ scope: value })} />
      </div>
      <ListPanel
        caption={t('Tasks')}
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <EmptyState title={t('No task matches.')}>
            <CodeBlock label="curl" code={firstTask()} />
          </EmptyState>
        }
      />
      <Drawer title={t('Task')} isOpen={open !== undefined} onClose={() => change({ task: undefined })}>
        {open && (
          <TaskDetail
            key={open}
            id={open}
            isWhole={isWhole}
            isOperator={user.installation_role === 'operator'}
            mayCancel={!isWhole && (role === 'owner' || role === 'admin')}
          />
        )}
      </Drawer>
    </>
  )
}
