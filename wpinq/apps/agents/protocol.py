"""The tools over the Model Context Protocol. Only here is its library loaded, and with it pydantic."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from wpinq.apps.agents.tools import INSTRUCTIONS, TOOLS, Desk
from wpinq.errors import installed

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

CALLS = 100
"""Calls that are answered at once; further ones wait."""


def server(desk: Desk | Callable[[Any], Desk]) -> Server[Any]:
    """A server of the protocol, whose calls arrive at a desk.

    Args:
        desk: Who answers them; or what finds that by the ASGI scope of the request.
    """
    import anyio
    import anyio.to_thread
    from mcp import MCPError
    from mcp.server.lowlevel import Server
    from mcp.types import INVALID_PARAMS, CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

    listed = ListToolsResult(
        tools=[
            Tool(
                name=tool.name, description=tool.description, input_schema=tool.schema,
                annotations=ToolAnnotations(
                    read_only_hint=not tool.spends, destructive_hint=tool.spends, idempotent_hint=True,
                    open_world_hint=False,
                ),
            )
            for tool in TOOLS.values()
        ]
    )  # fmt: skip

    threads = anyio.CapacityLimiter(CALLS)  # its own: the pages of a server wait for no agent

    async def tools(_: Any, __: Any) -> ListToolsResult:
        return listed

    async def call(context: Any, request: Any) -> CallToolResult:
        tool = TOOLS.get(request.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no such tool; there are {', '.join(TOOLS)}.")
        own_desk = desk if isinstance(desk, Desk) else desk(context.request.scope)
        answer = partial(own_desk.call, tool, request.arguments)
        answer_, refused = await anyio.to_thread.run_sync(answer, abandon_on_cancel=True, limiter=threads)
        text = msgspec.json.encode(answer_)
        return CallToolResult(
            content=[TextContent(text=text.decode())], structured_content=msgspec.json.decode(text), is_error=refused
        )

    made: Server[Any] = Server(
        "wpinq", version=installed(), instructions=INSTRUCTIONS, on_list_tools=tools, on_call_tool=call
    )
    made.middleware.clear()  # it would trace calls to wherever the environment says
    return made


def over_stdio(desk: Desk) -> None:
    """Serve one agent over standard input and output, until the input ends."""
    import anyio
    from mcp.server.stdio import stdio_server
    from mcp.shared.message import SessionMessage
    from mcp.types import INVALID_REQUEST, ErrorData, JSONRPCError

    problem = ErrorData(code=INVALID_REQUEST, message="this is no message of JSON-RPC 2.0, in UTF-8 on one line.")

    async def run() -> None:
        made = server(desk)
        heard, hears = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        async with stdio_server() as (reads, writes), anyio.create_task_group() as tasks:

            async def relay() -> None:  # the library tells nobody of what it cannot read
                async with heard:
                    async for message in reads:
                        if isinstance(message, Exception):
                            await writes.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=problem)))
                        else:
                            await heard.send(message)

            tasks.start_soon(relay)
            await made.run(hears, writes, made.create_initialization_options())

    anyio.run(run)


def over_http(desk: Callable[[Any], Desk]) -> StreamableHTTPSessionManager:
    """What answers agents over HTTP, each request by itself, with JSON.

    Args:
        desk: Who answers a request, by its ASGI scope.
    """
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    log = logging.getLogger("mcp")
    log.addHandler(logging.NullHandler())
    log.propagate = False  # it would log what agents send, with tracebacks
    return StreamableHTTPSessionManager(server(desk), json_response=True, stateless=True)
