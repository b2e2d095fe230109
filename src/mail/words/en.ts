/** The texts of mails in English. */
import type { Words } from './words.ts'

export const EN: Words = {
  service: {
    invitation: {
      subject: 'You are invited to {to}',
      text: 'The link makes you a user. It works once, within 7 days.',
      button: 'Accept the invitation',
    },
    recovery: {
      subject: 'Sign in to Tollgate',
      text: 'The link signs you in. It works once, within 15 minutes. Then set a new password on the page Profile & security. If you did not ask for it, do nothing.',
      button: 'Sign in',
    },
    new_email: {
      subject: 'Confirm your email address',
      text: 'You want to sign in to Tollgate with this address from now on. The link confirms it, once, within 24 hours. If you did not ask for it, do nothing.',
      button: 'Confirm the address',
    },
    email_changed: {
      subject: 'Your email address was changed',
      text: 'From now on you sign in to Tollgate with {email}. If this was not you, ask an operator at once.',
      button: '',
    },
  },
  event: {
    'task.succeeded': { subject: 'A task has succeeded', text: 'A task of {account} is done.' },
    'task.failed': {
      subject: 'A task has failed',
      text: 'A task of {account} ended without a result. What was held for it went back to the balance.',
    },
    'balance.low': {
      subject: 'The balance of {account} is low',
      text: 'The balance fell below the threshold that is set. Top up before calls are refused.',
    },
    'balance.empty': {
      subject: 'The balance of {account} is used up',
      text: 'Calls are refused until the account is topped up.',
    },
    'budget.threshold': {
      subject: 'A budget of {account} has reached a threshold',
      text: 'So much of the budget is spent. At 100 percent its calls are refused until the next period.',
    },
    'topup.succeeded': { subject: 'Credits were added to {account}', text: 'The payment has arrived.' },
    'topup.failed': {
      subject: 'A top-up of {account} has failed',
      text: 'No credits were added. Check the payment method.',
    },
    'key.expiring': {
      subject: 'A key of {account} expires soon',
      text: 'Programs that use the key are refused from then on.',
    },
    'key.revoked': {
      subject: 'A key of {account} was revoked',
      text: 'Programs that use the key are refused from now on.',
    },
    'channel.opened': {
      subject: 'A channel fails: {channel}',
      text: 'Its circuit breaker is open: calls go to other channels, where there are some.',
    },
    'channel.closed': { subject: 'A channel works again: {channel}', text: 'Its circuit breaker is closed.' },
    'journal.silent': {
      subject: 'A gateway has been silent for 5 minutes: {node}',
      text: 'Its journal may hold calls that are not booked. Start it again, or import or abandon its journal on the page Integrity.',
    },
    'webhook.disabled': {
      subject: 'A webhook endpoint was switched off',
      text: 'It has failed for 5 days. What failed can be sent again once it is switched on.',
    },
  },
  open: 'Open the console',
  footer: {
    service: 'Sent by Tollgate because someone entered this address.',
    event: 'Sent by Tollgate. Choose which events you get on the page Profile & security.',
  },
}
