/** The users of the installation and the invitations, for operators. */

import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import type { InstallationRole } from '../../../../schemas/management/operation.ts'
import { readTyped } from '../../../../src/core/confirmation.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { useSession } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { ChangeRole } from '../../ui/change-role.tsx'
import { Action, Dialog, DialogButton } from '../../ui/dialog.tsx'
import { Done } from '../../ui/form.tsx'
import { EnabledBadge, PageHeader } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { CodeBlock, Id, Time } from '../../ui/text.tsx'
import { SearchForm } from '../filters.tsx'
import { Invitations } from './invitations.tsx'
import { Invite } from './invite.tsx'

type User = AnswerOf<'listUsers'>['data'][number]

const route = getRouteApi('/signed-in/users')

const NO_ROLE = 'none'

const nameRoles = () => ({
  [NO_ROLE]: t('None'),
  operator: t('Operator'),
  auditor: t('Auditor'),
})

/** Returns the role as the API takes it. */
const toRole = (chosen: InstallationRole | typeof NO_ROLE): InstallationRole | null =>
  chosen === NO_ROLE ? null : chosen

interface UserActionsProps {
  readonly user: User
  /** Called with the address of a new sign-in link. */
  onLink(url: string): void
}

function UserActions({ user: { id, email, enabled, installation_role }, onLink }: UserActionsProps) {
  const quiet = { kind: 'quiet', changes: ['/users'] } as const
  return (
    <span className="flex gap-1">
      <ChangeRole
        name={email}
        role={installation_role ?? NO_ROLE}
        roles={nameRoles()}
        changes={quiet.changes}
        onRole={(role) => request('setInstallationRole', { id, installation_role: toRole(role) })}
      />
      {enabled ? (
        <>
          <Action
            kind="quiet"
            run={() => request('createSignInLink', { id })}
            onDone={({ url }) => onLink(url)}
          >
            {t('Sign-in link')}
          </Action>
          <Action
            {...quiet}
            confirm={{
              title: t('Disable {name}', { name: email }),
              description: t(
                'Their sessions end and they cannot sign in. The keys of their account keep working.',
              ),
              name: readTyped('disableUser', { email }),
              submit: t('Disable'),
            }}
            done={t('User disabled')}
            run={() => request('disableUser', { id })}
          >
            {t('Disable')}
          </Action>
        </>
      ) : (
        <Action {...quiet} done={t('User enabled')} run={() => request('enableUser', { id })}>
          {t('Enable')}
        </Action>
      )}
    </span>
  )
}

const InviteUser = ({ onClose }: { onClose(): void }) => (
  <Invite
    title={t('Invite a person')}
    roleLabel={t('Role in the installation')}
    roles={nameRoles()}
    usual={NO_ROLE}
    changes={['/invitations']}
    onInvite={(email, role) => request('createInvitation', { email, installation_role: toRole(role) })}
    onClose={onClose}
  />
)

export function Users() {
  const { search } = route.useSearch()
  const mayChange = useSession().user.installation_role === 'operator'
  const list = useList('listUsers', { search })
  const invitations = useList('listInvitations', {})
  const [link, setLink] = useState<string | null>(null)
  const roles = nameRoles()
  const columns: Column<User>[] = [
    {
      name: t('Email'),
      cell: ({ id, email, name }) => (
        <span className="flex flex-col items-start">
          <span className="font-medium">{email}</span>
          <span className="text-quiet text-sm">{name}</span>
          <Id id={id} />
        </span>
      ),
    },
    { name: t('Status'), cell: ({ enabled }) => <EnabledBadge isEnabled={enabled} /> },
    { name: t('Role'), cell: ({ installation_role: role }) => roles[role ?? NO_ROLE] },
    {
      name: t('Signed in'),
      isTime: true,
      cell: ({ signed_in_at }) => <Time at={signed_in_at} none={t('Never')} />,
    },
    { name: t('Actions'), cell: (user) => mayChange && <UserActions user={user} onLink={setLink} /> },
  ]
  return (
    <>
      <PageHeader
        title={t('Users')}
        description={t('The people who sign in to this installation, and what they may do in it.')}
        actions={
          mayChange && (
            <DialogButton kind="primary" dialog={(onClose) => <InviteUser onClose={onClose} />}>
              {t('Invite a person')}
            </DialogButton>
          )
        }
      />
      <SearchForm label={t('Email, name or id')} value={search} />
      <div className="flex flex-col gap-5">
        <ListPanel caption={t('Users')} list={list} columns={columns} empty={t('No users match.')} />
        <Invitations
          list={invitations}
          toRoleName={({ installation_role: role }) => roles[role ?? NO_ROLE]}
          mayRevoke={() => mayChange}
          onRevoke={(id) => request('revokeInvitation', { id })}
        />
      </div>
      {link !== null && (
        <Dialog
          title={t('Sign-in link')}
          description={t('It signs this user in once, within 15 minutes. Give it only to them.')}
          onClose={() => setLink(null)}
        >
          <CodeBlock isWrapped label={t('Link')} code={link} />
          <Done onClose={() => setLink(null)} />
        </Dialog>
      )}
    </>
  )
}
