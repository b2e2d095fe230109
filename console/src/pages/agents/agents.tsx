/** The agents of an organization. */
import { useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog, Drawer } from '../../ui/dialog.tsx'
import { OpenLink } from '../../ui/open-link.tsx'
import { EmptyState, PageHeader, Panel, QueryState } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { CodeBlock, Time } from '../../ui/text.tsx'
import { AgentDetail } from './detail.tsx'
import { AgentForm } from './form.tsx'
import { type Agent, AgentState } from './state.tsx'

const route = getRouteApi('/signed-in/agents')

const EXAMPLE = 'npm run -s tollgate -- agent create --account acc_… --file agent.yaml'

export function Agents() {
  const { account_id: accountId, role } = useAccount()
  const { agent: open } = route.useSearch()
  const [isCreating, setCreating] = useState(false)
  const mayChange = role === 'owner' || role === 'admin'
  const agents = useGet('listAgents', { account_id: accountId })
  const change = useChangeSearch()
  const create = useMutation({
    meta: { done: t('Agent created'), changes: ['/agents'] },
    mutationFn: (file: Agent['file']) => request('createAgent', { account_id: accountId, file }),
    onSuccess: ({ id }) => {
      setCreating(false)
      change({ agent: id })
    },
  })
  const rows = agents.data?.data ?? []
  const opened = rows.find(({ id }) => id === open)
  const columns: Column<Agent>[] = [
    { name: t('Agent'), cell: ({ id, file }) => <OpenLink search={{ agent: id }}>{file.name}</OpenLink> },
    { name: t('State'), cell: (agent) => <AgentState agent={agent} /> },
    { name: t('Model'), cell: ({ file }) => file.model },
    { name: t('Knowledge'), cell: ({ file }) => file.knowledge.join(', ') || '–' },
    { name: t('Changed'), cell: ({ updated_at, drafted_at }) => <Time at={drafted_at ?? updated_at} /> },
  ]
  return (
    <>
      <PageHeader
        title={t('Agents')}
        description={t(
          'A persona with a fixed model, tools and knowledge, behind keys that open nothing else.',
        )}
        actions={
          mayChange && (
            <Button kind="primary" onClick={() => setCreating(true)}>
              {t('Create an agent')}
            </Button>
          )
        }
      />
      <Panel>
        <QueryState query={agents} />
        {agents.isSuccess && rows.length === 0 && (
          <EmptyState title={t('This organization has no agents yet.')}>
            <CodeBlock label="tollgate" code={EXAMPLE} />
          </EmptyState>
        )}
        {rows.length > 0 && (
          <Table caption={t('Agents')} columns={columns} rows={rows} keyOf={({ id }) => id} />
        )}
      </Panel>
      <Dialog title={t('Create an agent')} isOpen={isCreating} onClose={() => setCreating(false)}>
        <AgentForm
          file={null}
          act={t('Create')}
          isBusy={create.isPending}
          error={create.error}
          onSave={(file) => create.mutate(file)}
        />
      </Dialog>
      <Drawer
        title={opened?.file.name ?? t('Agent')}
        isOpen={opened !== undefined}
        onClose={() => change({ agent: undefined })}
      >
        {opened && <AgentDetail key={opened.id} agent={opened} mayChange={mayChange} />}
      </Drawer>
    </>
  )
}
