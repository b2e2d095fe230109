/** Changes the email address: it takes effect when the user opens the link that is sent to it. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Field, Form, FormProblem } from '../../ui/form.tsx'
import { Section } from './section.tsx'

export function ChangeEmail({ current }: { readonly current: string }) {
  const [email, setEmail] = useState('')
  const ask = useMutation({
    mutationFn: () => request('changeEmail', { email }),
  })
  return (
    <Section
      title={t('Email address')}
      note={t('A new address takes effect when you open the link that is sent to it.')}
    >
      <Form className="flex max-w-sm flex-col gap-4" error={ask.error} onSubmit={() => ask.mutate()}>
        <Field label={t('Current address')} value={current} readOnly />
        <Field
          label={t('New address')}
          name="email"
          type="email"
          autoComplete="email"
          required
          value={email}
          onText={setEmail}
        />
        <FormProblem />
        <div className="flex flex-wrap items-center gap-3">
          <Button type="submit" isBusy={ask.isPending}>
            {t('Send the link')}
          </Button>
          <span role="status" className="text-good text-sm">
            {ask.data && t('A link is on its way to {email}.', { email: ask.data.email })}
          </span>
        </div>
      </Form>
    </Section>
  )
}
