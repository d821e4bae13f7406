%% A controller of an H.248 gateway out of OTP's megaco, told what to do line by line on standard input.
%%
%% megaco reads, writes and repeats; nothing of it is bent. Requests and answers are texts that megaco itself turns into its terms, because
%% its records are in no installed header.
-module(controller).
-export([main/1]).
%% megaco's user
-export([handle_connect/2, handle_connect/3, handle_disconnect/3, handle_syntax_error/3, handle_message_error/3, handle_trans_request/3,
         handle_trans_long_request/3, handle_trans_reply/4, handle_trans_ack/4, handle_unexpected_trans/3, handle_trans_request_abort/4,
         handle_segment_reply/5]).
%% a transport
-export([send_message/2, block/1, unblock/1, close/1, resend_message/2]).
%% names in binary
-export([encode_name/3, decode_name/3]).

%% A controller's calls that are out at a time.
-define(WORKERS, 8).

%% Address, `udp` or `tcp`, `pretty`, `compact` or `ber`.
main([Address, Transport, Encoding]) ->
    [begin say("no megaco in this Erlang", []), halt(0) end || code:which(megaco) =:= non_existing],
    {ok, Ip} = inet:parse_address(Address),
    persistent_term:put(transport, Transport),
    persistent_term:put(ip, Ip),
    [persistent_term:put(Name, counters:new(1, [])) || Name <- [overloads, syntax, doubled]],
    Mid = {ip4Address, {'IP4Address', tuple_to_list(Ip), 2944}},
    persistent_term:put(mid, Mid),
    ok = megaco:start(),
    {Module, Config} = encoding(Encoding),
    ok = megaco:start_user(Mid, [{user_mod, ?MODULE}, {encoding_mod, Module}, {encoding_config, Config}, {send_mod, ?MODULE},
                                 {auto_ack, true}, {trans_ack, true}, {trans_timer, 20}, {trans_ack_maxcount, 20}]),
    Handle = megaco:user_info(Mid, receive_handle),
    register(main, self()),
    open(Transport, Ip, Handle),
    say("listening", []),
    Connection = receive {connected, Known} -> Known after 20000 -> exit(nobody_came) end,
    receive registered -> say("registered", []) after 20000 -> exit(nobody_registered) end,
    listen(Connection).

encoding("pretty") -> {megaco_pretty_text_encoder, []};
encoding("compact") -> {megaco_compact_text_encoder, []};
encoding("ber") -> {megaco_ber_encoder, [{binary_name_resolver, {?MODULE, [8, 8, 8]}}]}.

%% Names of the gateway's terminations in six octets: trunk 1 or stream 2, kind of unit 1 for `ds1_`, unit, T1 of a T3, channel; and the packages
%% that megaco does not know.
encode_name(_, term_id, {megaco_term_id, _, Name}) -> term_id(Name);
encode_name(_, event, "ocp/mg_overload") -> [0, 16#51, 0, 1];
encode_name(_, event, "chp/mgcon") -> [0, 16#29, 0, 1];
encode_name(Options, Scope, Item) -> megaco_binary_name_resolver_v1:encode_name(Options, Scope, Item).

term_id(["root"]) -> {'TerminationID', [], lists:duplicate(8, 255)};
term_id(["*"]) -> {'TerminationID', [[16#ef]], [0, 0, 0, 0, 0, 0]};
term_id(["$"]) -> {'TerminationID', [[16#6f]], [0, 0, 0, 0, 0, 0]};
term_id(["rtp", Number]) -> {'TerminationID', [], [2, 0 | binary_to_list(<<(list_to_integer(Number)):32>>)]};
term_id(["ds", "ds1_" ++ Unit, "*"]) -> {'TerminationID', [[16#87]], trunk(Unit, 0)};
term_id(["ds", "ds1_" ++ Unit, Channel]) -> {'TerminationID', [], trunk(Unit, list_to_integer(Channel))}.

trunk(Unit, Channel) -> [1, 1 | binary_to_list(<<(list_to_integer(Unit)):16>>)] ++ [0, Channel].

decode_name(_, term_id, {'TerminationID', Wildcards, Octets}) ->
    {megaco_term_id, Wildcards =/= [], case {Wildcards, Octets} of
        {[], [255, 255, 255, 255, 255, 255, 255, 255]} -> ["root"];
        {[[16#ef]], _} -> ["*"];
        {[], [2, 0 | Number]} -> ["rtp", integer_to_list(binary:decode_unsigned(list_to_binary(Number)))];
        {[[16#87]], [1, 1, High, Low, 0, 0]} -> ["ds", "ds1_" ++ integer_to_list(256 * High + Low), "*"];
        {[], [1, 1, High, Low, 0, Channel]} -> ["ds", "ds1_" ++ integer_to_list(256 * High + Low), integer_to_list(Channel)]
    end};
decode_name(_, package, [0, 16#45]) -> "it";
decode_name(_, package, [0, 16#51]) -> "ocp";
decode_name(_, package, [0, 16#29]) -> "chp";
decode_name(_, event, [0, 16#51, 0, 1]) -> "ocp/mg_overload";
decode_name(_, event, [0, 16#29, 0, 1]) -> "chp/mgcon";
decode_name(Options, Scope, Item) -> megaco_binary_name_resolver_v1:decode_name(Options, Scope, Item).

open("udp", Ip, Handle) ->
    {ok, Supervisor} = megaco_udp:start_transport(),
    {ok, _, _} = megaco_udp:open(Supervisor, [{port, 2944}, {udp_options, [{ip, Ip}, {recbuf, 1 bsl 20}]}, {receive_handle, Handle}]);
open("tcp", Ip, Handle) ->
    {ok, Supervisor} = megaco_tcp:start_transport(),
    ok = megaco_tcp:listen(Supervisor, [{port, 2944}, {tcp_options, [{ip, Ip}, {nodelay, true}]}, {receive_handle, Handle}]).

listen(Connection) ->
    case io:get_line("") of
        eof -> halt(0);
        Line ->
            obey(Connection, string:lexemes(string:trim(Line), " ")),
            listen(Connection)
    end.

%% `encoding WHICH`: from now on messages are written like this.
obey(Connection, ["encoding", Which]) ->
    {Module, Config} = encoding(Which),
    ok = megaco:update_conn_info(Connection, encoding_mod, Module),
    ok = megaco:update_conn_info(Connection, encoding_config, Config),
    say("encoding", []);
%% `double on`, `double off`: each message is sent twice, and a tenth of them once more when they are long answered.
obey(_, ["double", Switch]) ->
    persistent_term:put(doubling, Switch =:= "on"),
    say("doubling", []);
%% `ask ACTIONS`, blanks as they are: one transaction, and what comes back in megaco's words.
obey(Connection, ["ask" | Words]) ->
    say("~0p", [answer(Connection, actions(lists:join($ , Words)))]);
%% `calls SPAN N`: so many calls on the channels of a T1, each channel by one worker; how many went well.
obey(Connection, ["calls", Span, Count]) ->
    Each = list_to_integer(Count) div ?WORKERS,
    Main = self(),
    [spawn_link(fun() -> Main ! {calls, [call(Connection, Span, 3 * Worker + Nth rem 3 + 1) || Nth <- lists:seq(1, Each)]} end)
     || Worker <- lists:seq(0, ?WORKERS - 1)],
    Results = lists:append([receive {calls, Some} -> Some end || _ <- lists:seq(1, ?WORKERS)]),
    Bad = [Result || Result <- Results, Result =/= ok],
    say("~b went well, ~b did not: ~0p", [length(Results) - length(Bad), length(Bad), lists:sublist(Bad, 1)]);
%% `burst SPAN`: a call on each channel, without waiting for anything.
obey(Connection, ["burst", Span]) ->
    [ok = megaco:cast(Connection, actions(setup(Span, Channel)), [{reply_data, burst}]) || Channel <- lists:seq(1, 24)],
    say("sent", []);
%% `await N`: waits for the replies of a burst.
obey(_, ["await", Count]) ->
    [receive {burst, {ok, _, _}} -> ok; {burst, Other} -> exit(Other) after 10000 -> exit(no_reply) end || _ <- lists:seq(1, list_to_integer(Count))],
    say("all answered", []);
%% `decode HEX`: whether these octets are a message of Annex A, and have its parts where they belong.
obey(_, ["decode", Hex]) ->
    case catch megaco_ber_encoder:decode_message([native], dynamic, binary:decode_hex(list_to_binary(Hex))) of
        {ok, _} -> say("good", []);
        Other -> say("~0p", [Other])
    end;
%% `count WHAT`
obey(_, ["count", What]) ->
    say("~b", [counters:get(persistent_term:get(list_to_existing_atom(What)), 1)]).

%% A call: set up, modified, taken down.
call(Connection, Span, Channel) ->
    case answer(Connection, actions(setup(Span, Channel))) of
        {ok, [{'ActionReply', Context, _, _, [_, {addReply, {'AmmsReply', [Ephemeral], _}}]}]} ->
            Id = integer_to_list(Context),
            Name = lists:join($/, element(3, Ephemeral)),
            Change = ["C=", Id, "{MF=", Name, "{M{O{MO=SR},R{\nv=0\nc=IN IP4 127.0.0.1\nm=audio 4000 RTP/AVP 0\n}}}}"],
            case answer(Connection, actions(Change)) of
                {ok, _} ->
                    case answer(Connection, actions(["C=", Id, "{S=", Span, $/, integer_to_list(Channel), ",S=", Name, "}"])) of
                        {ok, _} -> ok;
                        Other -> Other
                    end;
                Other -> Other
            end;
        Other -> Other
    end.

setup(Span, Channel) ->
    ["C=${A=", Span, $/, integer_to_list(Channel), "{M{O{MO=SR}}},A=${M{O{MO=RC},L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}}}}"].

%% The transaction's replies, each error found in them as `{error, _}`.
answer(Connection, Actions) ->
    case megaco:call(Connection, Actions, [{request_timer, 10000}]) of
        {_, {ok, Replies}} -> {ok, Replies};
        {_, {error, Reason}} -> {error, Reason};
        Other -> {error, Other}
    end.

%% megaco's terms of a text.
actions(Text) ->
    [{transactionRequest, {'TransactionRequest', _, Actions}}] = transactions(["T=1{", Text, "}"]),
    Actions.

transactions(Text) ->
    Message = iolist_to_binary(["!/1 [127.0.0.1]:2944 ", Text]),
    {ok, {'MegacoMessage', _, {'Message', _, _, {transactions, Transactions}}}} =
        megaco_compact_text_encoder:decode_message([], dynamic, Message),
    Transactions.

say(Format, Arguments) -> io:format(Format ++ "~n", Arguments).

handle_connect(Connection, _) ->
    main ! {connected, Connection},
    ok.
handle_connect(Connection, Version, _) -> handle_connect(Connection, Version).
handle_disconnect(_, _, _) -> ok.

%% What megaco cannot read is said where the test sees it.
handle_syntax_error(_, _, Fault) ->
    io:format(standard_error, "megaco cannot read: ~0p~n", [Fault]),
    counters:add(persistent_term:get(syntax), 1, 1),
    {no_reply, Fault}.
handle_message_error(_, _, Fault) ->
    io:format(standard_error, "an error message: ~0p~n", [Fault]),
    counters:add(persistent_term:get(syntax), 1, 1),
    no_reply.

handle_trans_request(_, _, Actions) when is_list(Actions) ->
    {discard_ack, [reply(Action) || Action <- Actions]};
handle_trans_request(_, _, Error) ->
    io:format(standard_error, "a request that megaco refuses: ~0p~n", [Error]),
    counters:add(persistent_term:get(syntax), 1, 1),
    {discard_ack, Error}.

reply({'ActionRequest', Context, _, _, Commands}) ->
    {'ActionReply', Context, asn1_NOVALUE, asn1_NOVALUE, [done(element(2, Command)) || Command <- Commands]}.

done({serviceChangeReq, {'ServiceChangeRequest', Terminations, _}}) ->
    Result = case Terminations of
        [{megaco_term_id, false, ["root"]}] ->
            main ! registered,
            {'ServiceChangeResParm', asn1_NOVALUE, asn1_NOVALUE, 1, asn1_NOVALUE, {'TimeNotation', "20260101", "00000012"}};
        _ -> {'ServiceChangeResParm', asn1_NOVALUE, asn1_NOVALUE, asn1_NOVALUE, asn1_NOVALUE, asn1_NOVALUE}
    end,
    {serviceChangeReply, {'ServiceChangeReply', Terminations, {serviceChangeResParms, Result}}};
done({notifyReq, {'NotifyRequest', Terminations, {'ObservedEventsDescriptor', _, Events}, _}}) ->
    [counters:add(persistent_term:get(overloads), 1, 1) || Event <- Events, element(2, Event) =:= "ocp/mg_overload"],
    {notifyReply, {'NotifyReply', Terminations, asn1_NOVALUE}}.

handle_trans_long_request(Connection, Version, Data) -> handle_trans_request(Connection, Version, Data).
handle_trans_reply(_, _, Reply, burst) ->
    main ! {burst, case Reply of {ok, What} -> {ok, What, last}; _ -> Reply end},
    ok;
handle_trans_reply(_, _, _, _) -> ok.
handle_trans_ack(_, _, _, _) -> ok.
handle_unexpected_trans(_, _, _) -> ok.
handle_trans_request_abort(_, _, _, _) -> ok.
handle_segment_reply(_, _, _, _, _) -> ok.

send_message(Handle, Message) ->
    Module = transport(),
    case persistent_term:get(doubling, false) of
        true ->
            Number = counters:get(persistent_term:get(doubled), 1),
            counters:add(persistent_term:get(doubled), 1, 1),
            Module:send_message(Handle, Message),
            [spawn(fun() -> timer:sleep(300), Module:send_message(Handle, Message) end) || Number rem 10 =:= 0],
            Module:send_message(Handle, Message);
        false -> Module:send_message(Handle, Message)
    end.
resend_message(Handle, Message) -> send_message(Handle, Message).
block(Handle) -> (transport()):block(Handle).
unblock(Handle) -> (transport()):unblock(Handle).
close(Handle) -> (transport()):close(Handle).

transport() ->
    case persistent_term:get(transport) of
        "udp" -> megaco_udp;
        "tcp" -> megaco_tcp
    end.
