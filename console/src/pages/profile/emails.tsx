/** Chooses the events that the user gets emails about, for each account. */

import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { EventType } from '../../../../schemas/notifications/event.ts'
import type { OperationPath } from '../../../../schemas/routes.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { CheckField } from '../../ui/form.tsx'
import { FormError, QueryState } from '../../ui/states.tsx'
import { Section } from './section.tsx'

const CHOICES_KEY = ['/me/email-choices' satisfies OperationPath, {}] as const

type Choice = AnswerOf<'showEmailChoices'>['accounts'][number]

const eventNames = (): Readonly<Record<EventType, string>> => ({
  'task.succeeded': t('A task has succeeded'),
  'task.failed': t('A task has failed'),
  'balance.low': t('The balance is low'),
  'balance.empty': t('The balance is used up'),
  'budget.threshold': t('A budget reaches a threshold'),
  'topup.succeeded': t('A top-up has succeeded'),
  'topup.failed': t('A top-up has failed'),
  'key.expiring': t('A key expires soon'),
  'key.revoked': t('A key was revoked'),
  'channel.opened': t('A channel fails'),
  'channel.closed': t('A channel works again'),
  'journal.silent': t('A gateway has been silent for 5 minutes'),
  'webhook.disabled': t('A webhook endpoint was switched off'),
})

function AccountChoices({ choice }: { readonly choice: Choice }) {
  const queries = useQueryClient()
  const save = useMutation({
    mutationFn: (events: EventType[]) =>
      request('updateEmailChoices', { account_id: choice.account_id, events }),
    onSuccess: (choices) => queries.setQueryData(CHOICES_KEY, choices),
  })
  const toggle = (event: EventType, isWanted: boolean) =>
    save.mutate(isWanted ? [...choice.events, event] : choice.events.filter((one) => one !== event))
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-2 font-medium">{choice.name}</legend>
      <div className="grid gap-2 sm:grid-cols-2">
        {choice.available.map((event) => (
          <CheckField
            key={event}
            label={eventNames()[event]}
            checked={choice.events.includes(event)}
            disabled={save.isPending}
            onCheck={(isChecked) => toggle(event, isChecked)}
          />
        ))}
      </div>
      <FormError error={save.error} />
    </fieldset>
  )
}

export function Emails() {
  const choices = useGet('showEmailChoices', {})
  return (
    <Section
      title={t('Emails')}
      note={t('Which events you are notified of by email, for each of your accounts.')}
    >
      <QueryState query={choices} rows={3} />
      {choices.data && !choices.data.is_sent && (
        <p className="text-quiet">
          {t('This installation sends no email until an operator sets up a mail server.')}
        </p>
      )}
      {choices.data?.accounts.map((choice) => (
        <AccountChoices key={choice.account_id} choice={choice} />
      ))}
    </Section>
  )
}
