/** The dialog that invites a person to a role, in the installation or in an organization. */
import { useMutation } from '@tanstack/react-query'
import type { Changed } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { DialogForm, Done, Field, SelectField } from '../../ui/form.tsx'
import { CodeBlock } from '../../ui/text.tsx'

/** Shows a link to copy, or a notice that the email was sent. */
const Invited = ({ url }: { readonly url: string | null }) =>
  url === null ? (
    <p role="status">{t('The invitation is on its way by email.')}</p>
  ) : (
    <>
      <p>{t('Pass the link on to the person yourself.')}</p>
      <CodeBlock isWrapped label={t('Link')} code={url} />
    </>
  )

interface InviteProps<Role extends string> {
  readonly title: string
  readonly roleLabel: string
  /** Their translated names. */
  readonly roles: Readonly<Record<Role, string>>
  /** The role that is chosen at first. */
  readonly usual: Role
  /** The path of the list of invitations. */
  readonly changes: readonly Changed[]
  /** Sends the invitation; `url` is null if it goes by email. */
  onInvite(email: string, role: Role): Promise<{ readonly url: string | null }>
  onClose(): void
}

export function Invite<Role extends string>({ changes, onInvite, onClose, ...shown }: InviteProps<Role>) {
  const form = useFields(`invitation ${changes[0]}`, { email: '', role: shown.usual })
  const { values, field } = form
  const invite = useMutation({ meta: { changes }, mutationFn: () => onInvite(values.email, values.role) })
  return (
    <Dialog title={shown.title} description={t('The link works once, within seven days.')} onClose={onClose}>
      {invite.data ? (
        <div className="flex flex-col gap-3">
          <Invited url={invite.data.url} />
          <Done onClose={onClose} />
        </div>
      ) : (
        <DialogForm sends={invite} fields={form} submit={t('Create the link')}>
          <Field label={t('Email')} type="email" required {...field('email')} />
          <SelectField
            label={shown.roleLabel}
            {...field('role')}
            options={Object.entries<string>(shown.roles)}
          />
        </DialogForm>
      )}
    </Dialog>
  )
}
