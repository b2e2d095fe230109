/** The agents of an organization. */

import { useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { Bot } from 'lucide-react'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Dialog, DialogButton, Drawer } from '../../ui/dialog.tsx'
import { OpenLink } from '../../ui/open-link.tsx'
import { PageHeader } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { NONE, Time } from '../../ui/text.tsx'
import { AgentDetail, AgentStatus } from './detail.tsx'
import { AgentForm } from './form.tsx'

const route = getRouteApi('/signed-in/agents')

type Agent = AnswerOf<'listAgents'>['data'][number]

function CreateAgent({ accountId, onClose }: { readonly accountId: string; onClose(): void }) {
  const change = useChangeSearch()
  const create = useMutation({
    meta: { done: t('Agent created'), changes: ['/agents'] },
    mutationFn: (file: Agent['file']) => request('createAgent', { account_id: accountId, file }),
    onSuccess: ({ id }) => {
      onClose()
      change({ agent: id })
    },
  })
  return (
    <Dialog title={t('Create an agent')} onClose={onClose}>
      <AgentForm file={null} draft={accountId} submit={t('Create')} saves={create} />
    </Dialog>
  )
}

export function Agents() {
  const { account_id: accountId, role } = useAccount()
  const { agent: open } = route.useSearch()
  const mayChange = role === 'owner' || role === 'admin'
  const agents = useGet('listAgents', { account_id: accountId })
  const change = useChangeSearch()
  const opened = agents.data?.data.find(({ id }) => id === open)
  const columns: Column<Agent>[] = [
    { name: t('Agent'), cell: ({ id, file }) => <OpenLink search={{ agent: id }}>{file.name}</OpenLink> },
    { name: t('Status'), cell: (agent) => <AgentStatus agent={agent} /> },
    { name: t('Model'), cell: ({ file }) => file.model },
    { name: t('Knowledge'), cell: ({ file }) => file.knowledge.join(', ') || NONE },
    {
      name: t('Changed'),
      isTime: true,
      cell: ({ updated_at, drafted_at }) => <Time at={drafted_at ?? updated_at} />,
    },
  ]
  const add = (label: string, kind?: 'primary') =>
    mayChange && (
      <DialogButton kind={kind} dialog={(onClose) => <CreateAgent accountId={accountId} onClose={onClose} />}>
        {label}
      </DialogButton>
    )
  return (
    <>
      <PageHeader
        title={t('Agents')}
        description={t('A persona with a fixed model, tools and knowledge. Its keys can call nothing else.')}
        actions={add(t('Create an agent'), 'primary')}
      />
      <ListPanel
        caption={t('Agents')}
        list={agents}
        rows={agents.data?.data}
        columns={columns}
        empty={{
          title: t('This organization has no agents yet.'),
          icon: Bot,
          docs: 'organizations.md',
          action: add(t('Create your first agent')),
        }}
      />
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
