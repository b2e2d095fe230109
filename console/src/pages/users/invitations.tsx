/** Invitations to the installation or to an organization. */
import type { AnswerOf } from '../../api/client.ts'
import type { useList } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Action } from '../../ui/dialog.tsx'
import { Badge } from '../../ui/states.tsx'
import { ListPanel } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'

type Invitation = AnswerOf<'listInvitations'>['data'][number]

function InvitationStatus({ used_at, revoked_at, expires_at }: Invitation) {
  if (used_at !== null) return <Badge tone="good">{t('Accepted')}</Badge>
  if (revoked_at !== null) return <Badge tone="bad">{t('Revoked')}</Badge>
  const isOver = Date.parse(expires_at) <= Date.now()
  return isOver ? <Badge tone="warn">{t('Expired')}</Badge> : <Badge>{t('Open')}</Badge>
}

interface InvitationsProps {
  readonly list: ReturnType<typeof useList<'listInvitations'>>
  /** Returns the name of the role that an invitation gives. */
  toRoleName(invitation: Invitation): string
  mayRevoke(invitation: Invitation): boolean
  onRevoke(id: string): Promise<unknown>
}

export const Invitations = ({ list, toRoleName, mayRevoke, onRevoke }: InvitationsProps) => (
  <ListPanel
    title={t('Invitations')}
    list={list}
    empty={t('There are no open invitations.')}
    columns={[
      { name: t('Email'), cell: ({ email }) => email },
      { name: t('Status'), cell: (invitation) => <InvitationStatus {...invitation} /> },
      { name: t('Role'), cell: toRoleName },
      { name: t('Expires'), isTime: true, cell: ({ expires_at }) => <Time at={expires_at} /> },
      {
        name: t('Actions'),
        cell: (invitation) =>
          invitation.used_at === null &&
          invitation.revoked_at === null &&
          mayRevoke(invitation) && (
            <Action
              kind="quiet"
              done={t('Invitation revoked')}
              run={() => onRevoke(invitation.id)}
              onDone={() => list.refetch()}
            >
              {t('Revoke')}
            </Action>
          ),
      },
    ]}
  />
)
