/** Profile & security: name and language, password, passkeys, one-time codes, providers, sessions. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { request, setCsrfToken } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { sessionQuery, useSession } from '../../api/session.ts'
import { chooseLanguage, LANGUAGES, type Language, t } from '../../i18n.ts'
import { useFields } from '../../ui/fields.ts'
import { Field, PageForm, SelectField } from '../../ui/form.tsx'
import { Badge, PageHeader, QueryState } from '../../ui/states.tsx'
import { Time } from '../../ui/text.tsx'
import { NewPasswordField } from '../sign-in/fields.tsx'
import { ChangeEmail } from './change-email.tsx'
import { Emails } from './emails.tsx'
import { OneTimeCodes } from './one-time-codes.tsx'
import { Passkeys } from './passkeys.tsx'
import { ConnectedProviders } from './providers.tsx'
import { SECURITY, Section, type Security } from './section.tsx'
import { Sessions } from './sessions.tsx'

function Details() {
  const { user } = useSession()
  const form = useFields('profile', { name: user.name, locale: user.locale as Language })
  const { values, field } = form
  const save = useMutation({
    meta: { changes: ['session'] },
    mutationFn: () => request('updateProfile', values),
    onSuccess: () => chooseLanguage(values.locale),
  })
  return (
    <Section title={t('Profile')}>
      <PageForm
        className="flex max-w-sm flex-col gap-4"
        sends={save}
        fields={form}
        submit={t('Save')}
        kind="primary"
        note={
          <span role="status" className="text-good text-sm">
            {save.isSuccess && t('Saved')}
          </span>
        }
      >
        <Field label={t('Email')} value={user.email} readOnly autoComplete="username" />
        <Field label={t('Name')} required maxLength={100} autoComplete="name" {...field('name')} />
        <SelectField label={t('Language')} {...field('locale')} options={Object.entries(LANGUAGES)} />
      </PageForm>
    </Section>
  )
}

function Password({ security }: { readonly security: Security }) {
  const queries = useQueryClient()
  // A secret: nothing keeps it.
  const form = useFields(null, { password: '' })
  const save = useMutation({
    meta: { changes: [SECURITY, '/me/sessions'] },
    mutationFn: () => request('setPassword', form.values),
    onSuccess: (session) => {
      setCsrfToken(session.csrf_token)
      queries.setQueryData(sessionQuery.queryKey, session)
    },
  })
  const at = security.password_set_at
  return (
    <Section title={t('Password')} note={t('A new password ends all your other sessions.')}>
      <p>
        {at === null ? (
          <Badge>{t('None')}</Badge>
        ) : (
          <>
            <Badge tone="good">{t('Set')}</Badge> <Time at={at} />
          </>
        )}
      </p>
      <PageForm
        className="flex max-w-sm flex-col gap-4"
        sends={save}
        fields={{ ...form, keep: form.restart }}
        submit={at === null ? t('Set password') : t('Change password')}
        note={
          <span role="status" className="text-good text-sm">
            {save.isSuccess && t('Saved')}
          </span>
        }
      >
        <NewPasswordField label={t('New password')} {...form.field('password')} />
      </PageForm>
    </Section>
  )
}

export function Profile() {
  const { user } = useSession()
  const security = useGet('showSecurity', {})
  return (
    <>
      <PageHeader
        title={t('Profile & security')}
        description={t('Who you are, how you sign in, and where you are signed in.')}
      />
      <div className="flex flex-col gap-5">
        <Details />
        <Emails />
        <QueryState query={security} />
        {security.data && (
          <>
            {security.data.may_change_email && <ChangeEmail current={user.email} />}
            <Password security={security.data} />
            <Passkeys security={security.data} />
            <OneTimeCodes security={security.data} />
            <ConnectedProviders security={security.data} />
          </>
        )}
        <Sessions />
      </div>
    </>
  )
}
