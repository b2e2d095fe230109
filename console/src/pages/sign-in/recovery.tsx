/** Recovery: sends a sign-in link by email. */
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Form, FormProblem } from '../../ui/form.tsx'
import { EmailField } from './fields.tsx'
import { Frame } from './frame.tsx'

export function Recovery() {
  const [email, setEmail] = useState('')
  const ask = useMutation({
    mutationFn: () => request('recover', { email }),
  })
  return (
    <Frame title={t('Forgot your password?')} description={t('You get a link by email that signs you in.')}>
      {ask.data ? (
        <p role="status">
          {t('If there is a user with {email}, a link is on its way. It works once, within 15 minutes.', {
            email: ask.data.email,
          })}
        </p>
      ) : (
        <Form className="flex flex-col gap-4" error={ask.error} onSubmit={() => ask.mutate()}>
          <EmailField value={email} onText={setEmail} />
          <FormProblem />
          <Button type="submit" kind="primary" isBusy={ask.isPending}>
            {t('Send the link')}
          </Button>
        </Form>
      )}
      <Link to="/sign-in" className="text-accent text-sm underline">
        {t('Back to the sign-in')}
      </Link>
    </Frame>
  )
}
