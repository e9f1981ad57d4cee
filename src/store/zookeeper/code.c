/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of codes: those of the client library, and our own. */
#include "store/zookeeper/names.h"

#include "store/kit/refusal.h"

#include <stddef.h>
#include <zookeeper/zookeeper.h>

static const struct mrt_zk_code codes[] = {
    {ZOK, MRT_ZK_DONE, MORTISE_OK, "done"},
    {MRT_ZK_FULL, MRT_ZK_NOT_DONE, MORTISE_EFULL, "too many are waiting already"},
    {MRT_ZK_OTHER, MRT_ZK_NOT_DONE, MORTISE_EMISMATCH, "in use as another kind"},
    {MRT_ZK_NO_HEIR, MRT_ZK_NOT_DONE, MORTISE_ENOTHELD, "nothing is detached under this token"},
    {MRT_ZK_OTHER_HEIR, MRT_ZK_NOT_DONE, MORTISE_EMISMATCH, MRT_REFUSAL_ADOPT},
    {MRT_ZK_MISPLACED, MRT_ZK_NOT_DONE, MORTISE_EMISMATCH, "in use by programs of another layout"},
    {ZSYSTEMERROR, MRT_ZK_PERHAPS, MORTISE_ESTORE, "error of the client library"},
    {ZRUNTIMEINCONSISTENCY, MRT_ZK_PERHAPS, MORTISE_ESTORE, "answer out of order"},
    {ZDATAINCONSISTENCY, MRT_ZK_PERHAPS, MORTISE_ESTORE, "inconsistent data"},
    {ZCONNECTIONLOSS, MRT_ZK_PERHAPS, MORTISE_EUNREACHABLE, "connection lost"},
    {ZMARSHALLINGERROR, MRT_ZK_PERHAPS, MORTISE_ESTORE, "unreadable answer"},
    {ZUNIMPLEMENTED, MRT_ZK_NOT_DONE, MORTISE_ENOTSUPPORTED, "not known to the server"},
    {ZOPERATIONTIMEOUT, MRT_ZK_PERHAPS, MORTISE_EUNREACHABLE, "no answer"},
    {ZBADARGUMENTS, MRT_ZK_NOT_DONE, MORTISE_ENAME, "refused as malformed"},
    {ZINVALIDSTATE, MRT_ZK_SESSION_OVER, MORTISE_ELOST, "the session has ended"},
    {ZNEWCONFIGNOQUORUM, MRT_ZK_NOT_DONE, MORTISE_ESTORE, "no quorum"},
    {ZRECONFIGINPROGRESS, MRT_ZK_NOT_DONE, MORTISE_ESTORE, "the ensemble is being changed"},
    {ZSSLCONNECTIONERROR, MRT_ZK_PERHAPS, MORTISE_EUNREACHABLE, "TLS failed"},
    {ZAPIERROR, MRT_ZK_NOT_DONE, MORTISE_ESTORE, "refused"},
    {ZNONODE, MRT_ZK_NO_NODE, MORTISE_ESTORE, "no such node"},
    {ZNOAUTH, MRT_ZK_NOT_DONE, MORTISE_EPERMISSION, "not permitted by the node's ACL"},
    {ZBADVERSION, MRT_ZK_NOT_DONE, MORTISE_ESTORE, "changed meanwhile"},
    {ZNOCHILDRENFOREPHEMERALS, MRT_ZK_NOT_DONE, MORTISE_ENAME,
     "a part of the path is an ephemeral node"},
    {ZNODEEXISTS, MRT_ZK_NOT_DONE, MORTISE_ESTORE, "the node exists"},
    {ZNOTEMPTY, MRT_ZK_NOT_DONE, MORTISE_ESTORE, "the node has children"},
    {ZSESSIONEXPIRED, MRT_ZK_SESSION_OVER, MORTISE_ELOST, "the session has expired"},
    {ZINVALIDCALLBACK, MRT_ZK_NOT_DONE, MORTISE_EINTERNAL, "no callback"},
    {ZINVALIDACL, MRT_ZK_NOT_DONE, MORTISE_EPERMISSION, "the ACL is refused"},
    {ZAUTHFAILED, MRT_ZK_SESSION_OVER, MORTISE_EPERMISSION, "the credentials are refused"},
    {ZCLOSING, MRT_ZK_PERHAPS, MORTISE_EUNREACHABLE, "the session is being closed"},
    {ZNOTHING, MRT_ZK_PERHAPS, MORTISE_ESTORE, "nothing to do"},
    {ZSESSIONMOVED, MRT_ZK_PERHAPS, MORTISE_EUNREACHABLE, "the session is at another server"},
    {ZNOTREADONLY, MRT_ZK_NOT_DONE, MORTISE_EUNREACHABLE, "the server has lost its quorum"},
    {ZEPHEMERALONLOCALSESSION, MRT_ZK_NOT_DONE, MORTISE_ENOTSUPPORTED,
     "the server gives only local sessions"},
    {ZNOWATCHER, MRT_ZK_NOT_DONE, MORTISE_ESTORE, "no such watch"},
    {ZRECONFIGDISABLED, MRT_ZK_NOT_DONE, MORTISE_ENOTSUPPORTED, "not allowed by the server"},
    {ZSESSIONCLOSEDREQUIRESASLAUTH, MRT_ZK_SESSION_OVER, MORTISE_EPERMISSION,
     "the server requires SASL"},
    {ZTHROTTLEDOP, MRT_ZK_PERHAPS, MORTISE_EUNREACHABLE, "the server is overloaded"},
};

const struct mrt_zk_code *mrt_zk_code(int code)
{
    static const struct mrt_zk_code other = {0, MRT_ZK_NOT_DONE, MORTISE_ESTORE,
                                             "refused with an unknown code"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code)
            return &codes[i];
    return &other;
}
