/** The routes of the console. Each page is a separate chunk, loaded when it is first opened. */
import type { QueryClient } from '@tanstack/react-query'
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from '@tanstack/react-router'
import { sessionQuery } from './api/session.ts'
import { printSearch, readSearch, texts } from './search.ts'
import { PageError } from './ui/page-error.tsx'
import { Shell } from './ui/shell.tsx'
import { Skeleton } from './ui/states.tsx'

interface RouterContext {
  readonly queries: QueryClient
}

const accountSearch = texts('account')

const root = createRootRouteWithContext<RouterContext>()({})

/** Knows the session, where there is one: without its CSRF token a signed-in browser is refused here as well. */
const beforeSignIn = createRoute({
  getParentRoute: () => root,
  id: 'before-sign-in',
  beforeLoad: async ({ context }) => {
    await context.queries.ensureQueryData(sessionQuery)
  },
})

const signIn = createRoute({
  getParentRoute: () => beforeSignIn,
  path: '/sign-in',
  validateSearch: ({ next }: Record<string, unknown>): { next?: string } =>
    typeof next === 'string' && next.startsWith('/') && !next.startsWith('//') ? { next } : {},
  component: lazyRouteComponent(() => import('./pages/sign-in/sign-in.tsx'), 'SignIn'),
})

const signUp = createRoute({
  getParentRoute: () => beforeSignIn,
  path: '/sign-up',
  component: lazyRouteComponent(() => import('./pages/sign-in/sign-up.tsx'), 'SignUp'),
})

const providerReturn = createRoute({
  getParentRoute: () => beforeSignIn,
  path: '/sign-in/oidc/$id',
  component: lazyRouteComponent(() => import('./pages/sign-in/provider-return.tsx'), 'ProviderReturn'),
})

const recovery = createRoute({
  getParentRoute: () => beforeSignIn,
  path: '/recovery',
  component: lazyRouteComponent(() => import('./pages/sign-in/recovery.tsx'), 'Recovery'),
})

const confirmEmail = createRoute({
  getParentRoute: () => beforeSignIn,
  path: '/confirm-email',
  component: lazyRouteComponent(() => import('./pages/sign-in/confirm-email.tsx'), 'ConfirmEmail'),
})

/** Pages that need a session. */
const signedIn = createRoute({
  getParentRoute: () => root,
  id: 'signed-in',
  validateSearch: accountSearch,
  beforeLoad: async ({ context, location }) => {
    const session = await context.queries.ensureQueryData(sessionQuery)
    if (session === null) throw redirect({ to: '/sign-in', search: { next: location.href } })
  },
  component: Shell,
})

const home = createRoute({
  getParentRoute: () => signedIn,
  path: '/',
  component: lazyRouteComponent(() => import('./pages/home.tsx'), 'Home'),
})

const keys = createRoute({
  getParentRoute: () => signedIn,
  path: '/keys',
  validateSearch: (search: Record<string, unknown>): { create?: true; key?: string } => ({
    ...texts('key')(search),
    ...(search.create === true && { create: true }),
  }),
  component: lazyRouteComponent(() => import('./pages/keys/keys.tsx'), 'Keys'),
})

const calls = createRoute({
  getParentRoute: () => signedIn,
  path: '/calls',
  validateSearch: texts(
    'period',
    'from',
    'to',
    'model',
    'status',
    'key_id',
    'unit_type',
    'error_code',
    'ref',
    'session_id',
    'order',
    'call',
    'live',
  ),
  component: lazyRouteComponent(() => import('./pages/calls/calls.tsx'), 'Calls'),
})

const profile = createRoute({
  getParentRoute: () => signedIn,
  path: '/profile',
  component: lazyRouteComponent(() => import('./pages/profile/profile.tsx'), 'Profile'),
})

const members = createRoute({
  getParentRoute: () => signedIn,
  path: '/members',
  component: lazyRouteComponent(() => import('./pages/members/members.tsx'), 'Members'),
})

const audit = createRoute({
  getParentRoute: () => signedIn,
  path: '/audit',
  validateSearch: texts('action', 'scope'),
  component: lazyRouteComponent(() => import('./pages/audit.tsx'), 'Audit'),
})

const accounts = createRoute({
  getParentRoute: () => signedIn,
  path: '/accounts',
  validateSearch: texts('search', 'open'),
  component: lazyRouteComponent(() => import('./pages/accounts/accounts.tsx'), 'Accounts'),
})

const models = createRoute({
  getParentRoute: () => signedIn,
  path: '/models',
  validateSearch: texts('q', 'model'),
  component: lazyRouteComponent(() => import('./pages/models/models.tsx'), 'Models'),
})

const playground = createRoute({
  getParentRoute: () => signedIn,
  path: '/playground',
  validateSearch: texts('model'),
  component: lazyRouteComponent(() => import('./pages/playground/playground.tsx'), 'Playground'),
})

const usage = createRoute({
  getParentRoute: () => signedIn,
  path: '/usage',
  validateSearch: texts('period', 'from', 'to', 'by', 'key_id', 'scope'),
  component: lazyRouteComponent(() => import('./pages/usage/usage.tsx'), 'Usage'),
})

const tasks = createRoute({
  getParentRoute: () => signedIn,
  path: '/tasks',
  validateSearch: texts('kind', 'state', 'scope', 'task'),
  component: lazyRouteComponent(() => import('./pages/tasks/tasks.tsx'), 'Tasks'),
})

const overview = createRoute({
  getParentRoute: () => signedIn,
  path: '/overview',
  component: lazyRouteComponent(() => import('./pages/overview.tsx'), 'Overview'),
})

const catalog = createRoute({
  getParentRoute: () => signedIn,
  path: '/catalog',
  component: lazyRouteComponent(() => import('./pages/catalog.tsx'), 'Catalog'),
})

const integrity = createRoute({
  getParentRoute: () => signedIn,
  path: '/integrity',
  component: lazyRouteComponent(() => import('./pages/integrity/integrity.tsx'), 'Integrity'),
})

const agents = createRoute({
  getParentRoute: () => signedIn,
  path: '/agents',
  validateSearch: texts('agent'),
  component: lazyRouteComponent(() => import('./pages/agents/agents.tsx'), 'Agents'),
})

const knowledge = createRoute({
  getParentRoute: () => signedIn,
  path: '/knowledge',
  validateSearch: texts('base', 'page', 'search'),
  component: lazyRouteComponent(() => import('./pages/knowledge/knowledge.tsx'), 'Knowledge'),
})

const billing = createRoute({
  getParentRoute: () => signedIn,
  path: '/billing',
  validateSearch: texts('payment', 'saved'),
  component: lazyRouteComponent(() => import('./pages/billing/billing.tsx'), 'Billing'),
})

const webhooks = createRoute({
  getParentRoute: () => signedIn,
  path: '/webhooks',
  validateSearch: texts('scope', 'endpoint', 'state', 'delivery'),
  component: lazyRouteComponent(() => import('./pages/webhooks/webhooks.tsx'), 'Webhooks'),
})

const tokens = createRoute({
  getParentRoute: () => signedIn,
  path: '/tokens',
  validateSearch: texts('scope'),
  component: lazyRouteComponent(() => import('./pages/tokens/tokens.tsx'), 'Tokens'),
})

const users = createRoute({
  getParentRoute: () => signedIn,
  path: '/users',
  validateSearch: texts('search'),
  component: lazyRouteComponent(() => import('./pages/users/users.tsx'), 'Users'),
})

const channels = createRoute({
  getParentRoute: () => signedIn,
  path: '/channels',
  component: lazyRouteComponent(() => import('./pages/channels.tsx'), 'Channels'),
})

const notFound = createRoute({
  getParentRoute: () => signedIn,
  path: '$',
  component: lazyRouteComponent(() => import('./pages/not-found.tsx'), 'NotFound'),
})

const routeTree = root.addChildren([
  beforeSignIn.addChildren([signIn, signUp, providerReturn, recovery, confirmEmail]),
  signedIn.addChildren([
    home,
    calls,
    models,
    playground,
    usage,
    tasks,
    keys,
    billing,
    webhooks,
    tokens,
    members,
    agents,
    knowledge,
    audit,
    overview,
    catalog,
    integrity,
    accounts,
    channels,
    users,
    profile,
    notFound,
  ]),
])

export const makeRouter = (queries: QueryClient) =>
  createRouter({
    routeTree,
    basepath: '/console',
    context: { queries },
    defaultPreload: 'intent',
    scrollRestoration: true,
    parseSearch: readSearch,
    stringifySearch: printSearch,
    defaultPendingComponent: () => <Skeleton />,
    defaultErrorComponent: PageError,
  })

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>
  }
}
