/** Members of an organization, and the keys that they request. */

import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { OperationPath } from '../../../../schemas/routes.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { useAccount, useSession } from '../../api/session.ts'
import { viewedAccount } from '../../api/viewing.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { ChangeRole } from '../../ui/change-role.tsx'
import { ConfirmButton } from '../../ui/dialog.tsx'
import { EmptyState, PageHeader } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Money, Time } from '../../ui/text.tsx'
import { useBudgets } from '../budgets/budgets.tsx'
import { MemberBudgets } from '../budgets/member.tsx'
import { Invitations } from '../users/invitations.tsx'
import { Invite } from '../users/invite.tsx'
import { Requests } from './requests.tsx'
import { memberRoles, rolesToGive } from './roles.ts'

type Member = AnswerOf<'listMembers'>['data'][number]
type Role = Member['role']

const INVITATIONS: OperationPath = '/organizations/{account_id}/invitations'
/** What the reader may do changes with their own role; a member who leaves takes requests along. */
const CHANGED = ['/members', '/key-requests', 'session'] as const

const remove = (accountId: string, memberId: string) =>
  request('removeMember', { account_id: accountId, member_id: memberId })

/** The invitations to an organization. Only owners revoke those to roles that only they give. */
function MemberInvitations({ accountId, isDecider, offered }: MemberInvitationsProps) {
  const list = useList('listMemberInvitations', { account_id: accountId })
  return (
    <Invitations
      list={list}
      roleOf={({ role }) => (role === null ? '–' : memberRoles()[role])}
      mayRevoke={({ role }) => isDecider && role !== null && role in offered}
      onRevoke={(id) => request('revokeMemberInvitation', { id, account_id: accountId })}
    />
  )
}

interface MemberInvitationsProps {
  readonly accountId: string
  readonly isDecider: boolean
  readonly offered: Partial<Record<Role, string>>
}

/** The members with what they spent; a plain member may not read them. */
function MemberList({ accountId, isDecider, offered }: MemberInvitationsProps) {
  const { user: self } = useSession()
  const list = useList('listMembers', { account_id: accountId })
  const budgets = useBudgets(accountId, { scope: 'member' })
  const columns: Column<Member>[] = [
    { name: t('Name'), cell: ({ name, email }) => <span title={email ?? ''}>{email ?? name}</span> },
    { name: t('Role'), cell: ({ role: one }) => memberRoles()[one] },
    { name: t('Spent'), isNumber: true, cell: ({ spent }) => <Money amount={spent} /> },
    {
      name: t('Budgets'),
      cell: ({ account_id, name, email }) => (
        <MemberBudgets
          accountId={accountId}
          memberId={account_id}
          name={email ?? name}
          budgets={(budgets.data ?? []).filter(({ member_id }) => member_id === account_id)}
          mayChange={isDecider}
        />
      ),
    },
    { name: t('Since'), cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: t('Actions'),
      cell: (member) =>
        isDecider && (
          <span className="flex gap-1">
            {member.role in offered && (
              <ChangeRole
                name={member.email ?? member.name}
                role={member.role}
                roles={offered}
                changes={CHANGED}
                onRole={(role) => {
                  const input = { account_id: accountId, member_id: member.account_id, role }
                  return request('putMember', input)
                }}
              />
            )}
            {member.account_id !== self.account_id && (
              <ConfirmButton
                title={t('Remove {name}', { name: member.name })}
                description={t('The keys issued to this member are revoked at once.')}
                name={member.name}
                act={t('Remove')}
                meta={{ done: t('Member removed'), changes: CHANGED }}
                onConfirm={() => remove(accountId, member.account_id)}
              />
            )}
          </span>
        ),
    },
  ]
  return (
    <ListPanel
      caption={t('Members')}
      list={list}
      columns={columns}
      keyOf={({ account_id }) => account_id}
      empty={<EmptyState title={t('This organization has no members yet.')} />}
    />
  )
}

export function Members() {
  const { account_id: accountId, name: organization, role } = useAccount()
  const { user: self, accounts } = useSession()
  const isMember = accounts.some(({ account_id }) => account_id === accountId)
  const navigate = useNavigate()
  const isDecider = role === 'owner' || role === 'admin'
  const offered: Partial<Record<Role, string>> = rolesToGive(role)
  const [isInviting, setInviting] = useState(false)
  return (
    <>
      <PageHeader
        title={t('Members')}
        description={t('People of the organization, what they may do, and what their keys spent.')}
        actions={
          <>
            {isMember && viewedAccount() === null && (
              <ConfirmButton
                kind="plain"
                title={t('Leave {name}', { name: organization })}
                description={t('You lose access, and the keys issued to you are revoked at once.')}
                name={organization}
                act={t('Leave')}
                meta={{ done: t('You have left {name}', { name: organization }), changes: CHANGED }}
                onConfirm={() => remove(accountId, self.account_id)}
                onDone={() => navigate({ to: '/', search: {} })}
              />
            )}
            {isDecider && (
              <Button kind="primary" onClick={() => setInviting(true)}>
                {t('Invite a member')}
              </Button>
            )}
          </>
        }
      />
      <div className="flex flex-col gap-6">
        {role !== 'member' && <MemberList accountId={accountId} isDecider={isDecider} offered={offered} />}
        {(isDecider || role === 'auditor') && (
          <MemberInvitations accountId={accountId} isDecider={isDecider} offered={offered} />
        )}
        <Requests accountId={accountId} isDecider={isDecider} mayAsk={isMember && role !== 'auditor'} />
      </div>
      {isInviting && (
        <Invite
          title={t('Invite a member')}
          roleLabel={t('Role')}
          roles={offered as Record<Role, string>}
          usual="member"
          changes={[INVITATIONS]}
          onInvite={(email, as) => request('inviteMember', { account_id: accountId, email, role: as })}
          onClose={() => setInviting(false)}
        />
      )}
    </>
  )
}
