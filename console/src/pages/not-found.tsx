/** Shown in place of a page that does not exist. */
import { Link } from '@tanstack/react-router'
import { t } from '../i18n.ts'
import { EmptyState, PageHeader, Panel } from '../ui/states.tsx'

export function NotFound() {
  return (
    <>
      <PageHeader title={t('Page not found')} />
      <Panel>
        <EmptyState title={t('The console has no page at this address.')}>
          <p className="text-center">
            <Link to="/" className="text-accent underline">
              {t('To the start page')}
            </Link>
          </p>
        </EmptyState>
      </Panel>
    </>
  )
}
