/** Users of the installation, and those who are invited, for operators. */
import { useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import type { InstallationRole } from '../../../../schemas/management/operation.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { useSession } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { ChangeRole } from '../../ui/change-role.tsx'
import { ConfirmButton, Dialog } from '../../ui/dialog.tsx'
import { Done } from '../../ui/form.tsx'
import { Badge, EmptyState, ErrorState, PageHeader } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { CodeBlock, Id, Time } from '../../ui/text.tsx'
import { SearchForm } from '../search-form.tsx'
import { Invitations } from './invitations.tsx'
import { Invite } from './invite.tsx'
import { installationRoles, NO_ROLE, roleOf } from './roles.ts'

type User = AnswerOf<'listUsers'>['data'][number]

const route = getRouteApi('/signed-in/users')

export function Users() {
  const { search } = route.useSearch()
  const { user: self } = useSession()
  const mayChange = self.installation_role === 'operator'
  const [isInviting, setInviting] = useState(false)
  const list = useList('listUsers', { search })
  const invitations = useList('listInvitations', {})
  const changes = ['/users'] as const
  const link = useMutation({
    mutationFn: ({ id }: User) => request('createSignInLink', { id }),
  })
  const enable = useMutation({
    meta: { done: t('User enabled'), changes },
    mutationFn: ({ id }: User) => request('enableUser', { id }),
  })
  const setRole = (id: string, role: InstallationRole | null) =>
    request('setInstallationRole', { id, installation_role: role })
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
    {
      name: t('State'),
      cell: ({ enabled }) =>
        enabled ? <Badge tone="good">{t('Active')}</Badge> : <Badge tone="bad">{t('Disabled')}</Badge>,
    },
    { name: t('Role'), cell: ({ installation_role: role }) => installationRoles()[role ?? NO_ROLE] },
    {
      name: t('Signed in'),
      cell: ({ signed_in_at }) => (signed_in_at ? <Time at={signed_in_at} /> : t('Never')),
    },
    {
      name: t('Actions'),
      cell: (user) =>
        mayChange && (
          <span className="flex gap-1">
            <ChangeRole
              name={user.email}
              role={user.installation_role ?? NO_ROLE}
              roles={installationRoles()}
              changes={changes}
              onRole={(role) => setRole(user.id, roleOf(role))}
            />
            {user.enabled && (
              <Button kind="quiet" onClick={() => link.mutate(user)}>
                {t('Sign-in link')}
              </Button>
            )}
            {user.enabled ? (
              <ConfirmButton
                title={t('Disable {name}', { name: user.email })}
                description={t('Their sessions end and they cannot sign in. Keys of their account work on.')}
                name={user.email}
                act={t('Disable')}
                meta={{ done: t('User disabled'), changes }}
                onConfirm={() => request('disableUser', { id: user.id })}
              />
            ) : (
              <Button kind="quiet" onClick={() => enable.mutate(user)}>
                {t('Enable')}
              </Button>
            )}
          </span>
        ),
    },
  ]
  return (
    <>
      <PageHeader
        title={t('Users')}
        description={t('The people who sign in to this installation, and what they may do in it.')}
        actions={
          mayChange && (
            <Button kind="primary" onClick={() => setInviting(true)}>
              {t('Invite a person')}
            </Button>
          )
        }
      />
      <SearchForm label={t('Email, name or id')} value={search} />
      <ErrorState error={link.error ?? enable.error} />
      <div className="flex flex-col gap-5">
        <ListPanel
          caption={t('Users')}
          list={list}
          columns={columns}
          keyOf={({ id }) => id}
          empty={<EmptyState title={t('No user matches.')} />}
        />
        <Invitations
          list={invitations}
          roleOf={({ installation_role }) => installationRoles()[installation_role ?? NO_ROLE]}
          mayRevoke={() => mayChange}
          onRevoke={(id) => request('revokeInvitation', { id })}
        />
      </div>
      {isInviting && (
        <Invite
          title={t('Invite a person')}
          roleLabel={t('Role in the installation')}
          roles={installationRoles()}
          usual={NO_ROLE}
          changes={['/invitations']}
          onInvite={(email, role) => request('createInvitation', { email, installation_role: roleOf(role) })}
          onClose={() => setInviting(false)}
        />
      )}
      {link.data && (
        <Dialog
          title={t('Sign-in link')}
          description={t('It signs this user in once, within 15 minutes. Hand it to them alone.')}
          onClose={link.reset}
        >
          <CodeBlock isWrapped label={t('Link')} code={link.data.url} />
          <Done onClose={link.reset} />
        </Dialog>
      )}
    </>
  )
}
