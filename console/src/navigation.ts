/** The pages of the console by group, and who sees each. The texts are translated where they are shown. */
import type { Access, Session } from './api/session.ts'

export interface PageLink {
  readonly path: string
  readonly name: string
  isFor(session: Session, account: Access): boolean
}

interface PageGroup {
  readonly title: string
  readonly pages: readonly PageLink[]
}

const everyone = () => true

/** Those who have one of the roles, and auditors. */
const readers =
  (...roles: readonly Access['role'][]) =>
  (_: Session, { role }: Access) =>
    role === 'auditor' || roles.includes(role)

export const NAVIGATION: readonly PageGroup[] = [
  {
    title: 'Account',
    pages: [
      { path: '/', name: 'Home', isFor: everyone },
      { path: '/models', name: 'Models', isFor: everyone },
      {
        path: '/playground',
        name: 'Playground',
        isFor: (_, { role }) => role === 'owner' || role === 'admin',
      },
      { path: '/calls', name: 'Calls', isFor: everyone },
      { path: '/usage', name: 'Usage', isFor: everyone },
      { path: '/tasks', name: 'Tasks', isFor: readers('owner', 'admin') },
      { path: '/knowledge', name: 'Knowledge', isFor: readers('owner', 'admin') },
      { path: '/keys', name: 'Keys', isFor: (_, { role }) => role !== 'billing' },
      { path: '/billing', name: 'Billing', isFor: readers('owner', 'billing') },
      { path: '/audit', name: 'Audit', isFor: readers('owner', 'admin') },
    ],
  },
  {
    title: 'Organization',
    pages: [
      { path: '/members', name: 'Members', isFor: (_, { kind }) => kind === 'organization' },
      {
        path: '/agents',
        name: 'Agents',
        isFor: (session, account) =>
          account.kind === 'organization' && readers('owner', 'admin')(session, account),
      },
    ],
  },
  {
    title: 'Installation',
    pages: [
      { path: '/overview', name: 'Overview', isFor: ({ user }) => user.installation_role !== null },
      { path: '/accounts', name: 'Accounts', isFor: ({ user }) => user.installation_role !== null },
      { path: '/channels', name: 'Channels', isFor: ({ user }) => user.installation_role !== null },
      { path: '/catalogue', name: 'Catalogue', isFor: ({ user }) => user.installation_role !== null },
      { path: '/integrity', name: 'Integrity', isFor: ({ user }) => user.installation_role !== null },
      { path: '/users', name: 'Users', isFor: ({ user }) => user.installation_role !== null },
    ],
  },
  {
    title: 'You',
    pages: [{ path: '/profile', name: 'Profile & security', isFor: everyone }],
  },
]
