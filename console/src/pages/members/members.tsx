/** The members of an organization and their requests for keys. */

import { useNavigate } from '@tanstack/react-router'
import { Users } from 'lucide-react'
import type { OperationPath } from '../../../../schemas/routes.ts'
import { readTyped } from '../../../../src/core/confirmation.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { useAccount, useSession } from '../../api/session.ts'
import { readViewedAccount } from '../../api/viewing.ts'
import { t } from '../../i18n.ts'
import { ChangeRole } from '../../ui/change-role.tsx'
import { Action, DialogButton } from '../../ui/dialog.tsx'
import { PageHeader } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Money, Time } from '../../ui/text.tsx'
import { useBudgets } from '../budgets/budgets.tsx'
import { MemberBudgets } from '../budgets/member.tsx'
import { Invitations } from '../users/invitations.tsx'
import { Invite } from '../users/invite.tsx'
import { Requests } from './requests.tsx'

type Member = AnswerOf<'listMembers'>['data'][number]
type Role = Member['role']

const INVITATIONS: OperationPath = '/organizations/{account_id}/invitations'
/** A new role changes what the user may do, and the requests of a member who leaves go with them. */
const CHANGED = ['/members', '/key-requests', 'session'] as const

const nameRoles = () => ({
  owner: t('Owner'),
  admin: t('Admin'),
  billing: t('Billing'),
  member: t('Member'),
})

/** Lists the roles that a user may give: an admin gives only lower ones. */
function listRolesToGive(own: string): Partial<Record<Role, string>> {
  const { owner, admin, ...below } = nameRoles()
  return own === 'admin' ? below : { owner, admin, ...below }
}

const removeMember = (accountId: string, memberId: string) =>
  request('removeMember', { account_id: accountId, member_id: memberId })

interface MembersProps {
  readonly accountId: string
  readonly isDecider: boolean
  /** The roles that the user may give. */
  readonly offered: Partial<Record<Role, string>>
}

/** The invitations to an organization. An invitation to a role that only owners give is revoked by owners only. */
function MemberInvitations({ accountId, isDecider, offered }: MembersProps) {
  const list = useList('listMemberInvitations', { account_id: accountId })
  return (
    <Invitations
      list={list}
      toRoleName={({ role }) => (role === null ? '–' : nameRoles()[role])}
      mayRevoke={({ role }) => isDecider && role !== null && role in offered}
      onRevoke={(id) => request('revokeMemberInvitation', { id, account_id: accountId })}
    />
  )
}

function MemberActions({ member, accountId, offered }: Omit<MembersProps, 'isDecider'> & { member: Member }) {
  const { user: self } = useSession()
  const { account_id: id, name, email, role } = member
  return (
    <span className="flex gap-1">
      {role in offered && (
        <ChangeRole
          name={email ?? name}
          role={role}
          roles={offered}
          changes={CHANGED}
          onRole={(given) => {
            const input = { account_id: accountId, member_id: id, role: given }
            return request('putMember', input)
          }}
        />
      )}
      {id !== self.account_id && (
        <Action
          kind="quiet"
          confirm={{
            title: t('Remove {name}', { name }),
            description: t('The keys issued to this member are revoked at once.'),
            name: readTyped('removeMember', { name }),
            submit: t('Remove'),
          }}
          done={t('Member removed')}
          changes={CHANGED}
          run={() => removeMember(accountId, id)}
        >
          {t('Remove')}
        </Action>
      )}
    </span>
  )
}

/** The members and what they spent; plain members may not read it. */
function MemberList(props: MembersProps) {
  const { accountId, isDecider } = props
  const list = useList('listMembers', { account_id: accountId })
  const budgets = useBudgets(accountId, { scope: 'member' })
  const columns: Column<Member>[] = [
    { name: t('Name'), cell: ({ name, email }) => <span title={email ?? ''}>{email ?? name}</span> },
    { name: t('Role'), cell: ({ role }) => nameRoles()[role] },
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
    { name: t('Since'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
    { name: t('Actions'), cell: (member) => isDecider && <MemberActions {...props} member={member} /> },
  ]
  return (
    <ListPanel
      caption={t('Members')}
      list={list}
      columns={columns}
      toKey={({ account_id }) => account_id}
      empty={{ title: t('This organization has no members yet.'), icon: Users, docs: 'organizations.md' }}
    />
  )
}

export function Members() {
  const { account_id: accountId, name: organization, role } = useAccount()
  const { user: self, accounts } = useSession()
  const isMember = accounts.some(({ account_id }) => account_id === accountId)
  const navigate = useNavigate()
  const isDecider = role === 'owner' || role === 'admin'
  const offered = listRolesToGive(role)
  const shared = { accountId, isDecider, offered }
  return (
    <>
      <PageHeader
        title={t('Members')}
        description={t('The people of the organization, what they may do, and what their keys have spent.')}
        actions={
          <>
            {isMember && readViewedAccount() === null && (
              <Action
                confirm={{
                  title: t('Leave {name}', { name: organization }),
                  description: t('You lose access, and the keys issued to you are revoked at once.'),
                  name: readTyped('removeMember', { name: organization }),
                  submit: t('Leave'),
                }}
                done={t('You have left {name}', { name: organization })}
                changes={CHANGED}
                run={() => removeMember(accountId, self.account_id)}
                onDone={() => navigate({ to: '/', search: {} })}
              >
                {t('Leave')}
              </Action>
            )}
            {isDecider && (
              <DialogButton
                kind="primary"
                dialog={(onClose) => (
                  <Invite
                    title={t('Invite a member')}
                    roleLabel={t('Role')}
                    roles={offered as Record<Role, string>}
                    usual="member"
                    changes={[INVITATIONS]}
                    onInvite={(email, as) =>
                      request('inviteMember', { account_id: accountId, email, role: as })
                    }
                    onClose={onClose}
                  />
                )}
              >
                {t('Invite a member')}
              </DialogButton>
            )}
          </>
        }
      />
      <div className="flex flex-col gap-6">
        {role !== 'member' && <MemberList {...shared} />}
        {(isDecider || role === 'auditor') && <MemberInvitations {...shared} />}
        <Requests accountId={accountId} isDecider={isDecider} mayAsk={isMember && role !== 'auditor'} />
      </div>
    </>
  )
}
