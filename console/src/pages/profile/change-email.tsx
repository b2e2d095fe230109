/** Changes the email address: it takes effect when the user opens the link that is sent to it. */
import { useMutation } from '@tanstack/react-query'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { useFields } from '../../ui/fields.ts'
import { Field, PageForm } from '../../ui/form.tsx'
import { Section } from './section.tsx'

export function ChangeEmail({ current }: { readonly current: string }) {
  const form = useFields('change email', { email: '' })
  const ask = useMutation({ mutationFn: () => request('changeEmail', form.values) })
  return (
    <Section
      title={t('Email address')}
      note={t('A new address takes effect when you open the link that is sent to it.')}
    >
      <PageForm
        className="flex max-w-sm flex-col gap-4"
        sends={ask}
        fields={{ ...form, keep: form.restart }}
        submit={t('Send the link')}
        note={
          <span role="status" className="text-good text-sm">
            {ask.data && t('A link is on its way to {email}.', { email: ask.data.email })}
          </span>
        }
      >
        <Field label={t('Current address')} value={current} readOnly />
        <Field label={t('New address')} type="email" autoComplete="email" required {...form.field('email')} />
      </PageForm>
    </Section>
  )
}
