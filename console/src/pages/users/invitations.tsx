/** Invitations, to the installation or to an organization: listed, and revoked. */
import { useMutation } from '@tanstack/react-query'
import type { AnswerOf } from '../../api/client.ts'
import type { useList } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Badge, EmptyState, ErrorState } from '../../ui/states.tsx'
import { ListPanel } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'

type Invitation = AnswerOf<'listInvitations'>['data'][number]

const isOver = ({ expires_at }: Invitation): boolean => Date.parse(expires_at) <= Date.now()

function stateOf(invitation: Invitation) {
  if (invitation.used_at !== null) return <Badge tone="good">{t('Accepted')}</Badge>
  if (invitation.revoked_at !== null) return <Badge tone="bad">{t('Revoked')}</Badge>
  return isOver(invitation) ? <Badge tone="warn">{t('Expired')}</Badge> : <Badge>{t('Open')}</Badge>
}

interface InvitationsProps {
  readonly list: ReturnType<typeof useList<'listInvitations'>>
  /** Returns the name of the role that an invitation gives. */
  roleOf(invitation: Invitation): string
  mayRevoke(invitation: Invitation): boolean
  onRevoke(id: string): Promise<unknown>
}

export function Invitations({ list, roleOf, mayRevoke, onRevoke }: InvitationsProps) {
  const revoke = useMutation({
    meta: { done: t('Invitation revoked') },
    mutationFn: onRevoke,
    onSettled: () => list.refetch(),
  })
  return (
    <>
      <ErrorState error={revoke.error} />
      <ListPanel
        title={t('Invitations')}
        caption={t('Invitations')}
        list={list}
        keyOf={({ id }) => id}
        empty={<EmptyState title={t('No one is invited.')} />}
        columns={[
          { name: t('Email'), cell: ({ email }) => email },
          { name: t('State'), cell: stateOf },
          { name: t('Role'), cell: roleOf },
          { name: t('Expires'), cell: ({ expires_at }) => <Time at={expires_at} /> },
          {
            name: t('Actions'),
            cell: (invitation) =>
              invitation.used_at === null &&
              invitation.revoked_at === null &&
              mayRevoke(invitation) && (
                <Button kind="quiet" onClick={() => revoke.mutate(invitation.id)}>
                  {t('Revoke')}
                </Button>
              ),
          },
        ]}
      />
    </>
  )
}
