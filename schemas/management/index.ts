/** Every operation of the management API, in the order of the reference. */
import * as accounts from './accounts/accounts.ts'
import * as agents from './accounts/agents.ts'
import * as audit from './accounts/audit.ts'
import * as budgets from './accounts/budgets.ts'
import * as keyRotation from './accounts/key-rotation.ts'
import * as keys from './accounts/keys.ts'
import * as organizations from './accounts/organizations.ts'
import * as tokens from './accounts/tokens.ts'
import * as callLog from './call-log.ts'
import * as calls from './calls/calls.ts'
import * as lostSubmits from './calls/lost-submits.ts'
import * as search from './calls/search.ts'
import * as tasks from './calls/tasks.ts'
import * as usage from './calls/usage.ts'
import * as channels from './channels.ts'
import * as configuration from './configuration.ts'
import * as jobs from './jobs.ts'
import * as journals from './journals.ts'
import * as bases from './knowledge/bases.ts'
import * as imports from './knowledge/imports.ts'
import * as pages from './knowledge/pages.ts'
import * as live from './live.ts'
import * as alerts from './notifications/alerts.ts'
import * as deliveries from './notifications/deliveries.ts'
import * as webhooks from './notifications/webhooks.ts'
import type { Operation } from './operation.ts'
import * as partitions from './partitions.ts'
import * as automatic from './payments/automatic.ts'
import * as payments from './payments/payments.ts'
import * as refusedEvents from './payments/refused-events.ts'
import * as profile from './people/profile.ts'
import * as savedViews from './people/saved-views.ts'
import * as sessions from './people/sessions.ts'
import * as signIn from './people/sign-in.ts'
import * as users from './people/users.ts'

const isOperation = (value: unknown): value is Operation =>
  typeof value === 'object' && value !== null && 'allows' in value

export const OPERATIONS: readonly Operation[] = [
  sessions,
  signIn,
  profile,
  savedViews,
  users,
  accounts,
  payments,
  refusedEvents,
  automatic,
  organizations,
  keys,
  budgets,
  keyRotation,
  agents,
  bases,
  pages,
  imports,
  calls,
  callLog,
  usage,
  tasks,
  lostSubmits,
  search,
  tokens,
  webhooks,
  deliveries,
  alerts,
  audit,
  channels,
  live,
  configuration,
  jobs,
  journals,
  partitions,
].flatMap((domain) => Object.values<unknown>(domain).filter(isOperation))
