/** The roles in an organization by name. */
import { t } from '../../i18n.ts'

/** Those that somebody gives to others: an admin none that is not below an admin's. */
export const rolesToGive = (own: string) => {
  const { billing, member, ...above } = memberRoles()
  return own === 'admin' ? { billing, member } : { ...above, billing, member }
}

export const memberRoles = () => ({
  owner: t('Owner'),
  admin: t('Admin'),
  billing: t('Billing'),
  member: t('Member'),
})
